package redact

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// level says what a name tells of its value.
type level uint8

const (
	plain    level = iota
	personal       // about a person
	place          // an address: of a person, or of something in a network
	token          // a token, or a number of them
	secret
)

// phrases are the words of a name, joined, that make it sensitive.
var phrases = map[string]level{}

func init() {
	for l, words := range map[level]string{
		secret: `password passwords passwd passphrase passcode pwd secret secrets
			apikey apikeys accesskey accesskeys privatekey secretkey signingkey encryptionkey sessionkey masterkey authkey
			apitoken accesstoken authtoken refreshtoken idtoken sessiontoken bearertoken
			authorization credential credentials cookie cookies jwt bearer otp dsn connectionstring`,
		token: `token tokens`,
		personal: `email emails mail emailaddress phone phones phonenumber telephone tel mobile fax msisdn
			street postcode postalcode zipcode userdata personaldata personalinfo pii
			firstname lastname fullname surname birthday birthdate dateofbirth dob
			ssn iban creditcard cardnumber cvv cvc passport`,
		place: `address addresses`,
	} {
		for _, word := range strings.Fields(words) {
			phrases[word] = l
		}
	}
}

// about are last words of names that tell of a value without being it:
// token_count, email_verified.
var about = set(`count counts length len size limit budget total max min type kind policy status state ttl expiry expires expired
	valid verified required enabled present at ms seconds bytes rate id ids index seq used left remaining`)

// network are words before "address" that say of what it is one.
var network = set(`ip ipv4 ipv6 mac net network remote local listen listener server client peer bind host tcp udp http base memory
	source src destination dest dst block page virtual replay`)

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

// Bounds of a name; of a longer one the end is looked at.
const (
	maxName   = 96 // bytes
	maxPhrase = 3  // words
)

// level judges a name.
func (r *rules) level(name string) level {
	if name == "" {
		return plain
	}
	words := split(name)
	if r.fields[strings.Join(words, "_")] {
		return secret
	}
	most := plain
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

// kept reports whether a name is one of an identifier.
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

// lowerNext reports whether a lower case letter begins a text: the capital
// before it begins a word, as the K of APIKey.
func lowerNext(s string) bool {
	c, _ := utf8.DecodeRuneInString(s)
	return unicode.IsLower(c)
}
