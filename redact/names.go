package redact

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// level is the sensitivity of a value that its name implies.
type level uint8

const (
	plain    level = iota
	personal       // about a person
	place          // an address: of a person, or of something in a network
	token          // a token, or a count of tokens
	secret
)

// phrases are the words of a name, joined, that make it sensitive.
var phrases = map[string]level{}

func init() {
	for l, words := range map[level]string{
		secret: `password passwords passwd passphrase passcode pwd secret secrets
			apikey apikeys accesskey accesskeys privatekey secretkey signingkey encryptionkey sessionkey masterkey authkey
			apitoken accesstoken authtoken refreshtoken idtoken sessiontoken bearertoken
			authorization credential credentials pgpassword pgpass mysqlpwd mnemonic seedphrase cvv cvc cvv2 cvc2 cookie cookies jwt bearer otp dsn connectionstring`,
		token: `token tokens`,
		personal: `email emails mail emailaddress phone phones phonenumber phonenumbers telephone tel mobile cellphone fax msisdn whatsapp
			street postcode postalcode zipcode userdata personaldata personalinfo pii
			firstname lastname fullname surname birthday birthdate dateofbirth dob
			ssn iban creditcard cardnumber passport`,
		place: `address addresses`,
	} {
		for _, word := range strings.Fields(words) {
			phrases[word] = l
		}
	}
}

// callable are words of names whose values are phone numbers.
var callable = set(`phone phones phonenumber telephone telefon tel mobile cell cellphone handy fax msisdn whatsapp sms`)

// called reports whether a name is one of a phone number.
func called(name string) bool {
	for _, word := range split(name) {
		if callable[strings.TrimRight(word, "0123456789")] {
			return true
		}
	}
	return false
}

// about are last words of names that describe a sensitive value without holding it:
// token_count, email_verified.
var about = set(`count counts length len size limit budget total max min type kind policy status state ttl expiry expires expired
	valid verified required enabled present at ms seconds bytes rate id ids index seq used left remaining`)

// network are words before "address" that make it a technical address.
var network = set(`ip ipv4 ipv6 mac net network remote local listen listener server client peer bind host tcp udp http base memory
	source src destination dest dst block page virtual replay`)

// logins are words before "pass" that make it a password.
var logins = set(`db database user login admin root mysql pg postgres redis mongo mongodb rabbitmq mq smtp imap mail ftp sftp ssh ldap http proxy
	wifi auth basic sql keystore truststore`)

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

// Bounds of a name; for a longer name only its end counts.
const (
	maxName   = 96 // bytes
	maxPhrase = 3  // words
)

// level returns the level of a name.
func (r *rules) level(name string) level {
	if name == "" {
		return plain
	}
	words := split(name)
	if r.fields[strings.Join(words, "_")] {
		return secret
	}
	most := plain
	if n := len(words); n > 1 && words[n-1] == "pass" && logins[words[n-2]] {
		return secret
	}
	for i := range words {
		joined := ""
		for j := i; j < len(words) && j < i+maxPhrase; j++ {
			joined += words[j]
			l := phrases[strings.TrimRight(joined, "0123456789")] // email2
			switch {
			case l <= most:
			case j+1 < len(words) && about[words[len(words)-1]]:
			case l == place && i > 0 && network[words[i-1]]:
			default:
				most = l
			}
		}
	}
	return most
}

// kept reports whether a name is that of an identifier ([Options.Keep]).
func (r *rules) kept(name string) bool {
	return len(r.keep) > 0 && name != "" && r.keep[strings.Join(split(name), "_")]
}

// split returns the words of a name in lower case: "X-Api-Key", "apiKey" and
// "API_KEY" are api and key, with or without an x.
func split(name string) []string {
	if len(name) > maxName {
		name = name[len(name)-maxName:]
	}
	var words []string
	start := -1
	end := func(i int) {
		if start >= 0 {
			words = append(words, strings.ToLower(name[start:i]))
		}
		start = -1
	}
	var before rune
	for i, c := range name {
		switch {
		case !unicode.IsLetter(c) && !unicode.IsDigit(c):
			end(i)
		case unicode.IsUpper(c) && start >= 0 && (!unicode.IsUpper(before) || lowerNext(name[i+utf8.RuneLen(c):])):
			end(i)
			start = i
		case start < 0:
			start = i
		}
		before = c
	}
	end(len(name))
	return words
}

// lowerNext reports whether a text begins with a lower case letter, so that the capital
// before it begins a word, as the K of APIKey.
func lowerNext(s string) bool {
	c, _ := utf8.DecodeRuneInString(s)
	return unicode.IsLower(c)
}
