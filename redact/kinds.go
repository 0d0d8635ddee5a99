package redact

// kind is a kind of sensitive text.
type kind uint8

const (
	kindEmail kind = iota
	kindPhone
	kindAddress
	kindCard
	kindIBAN
	kindToken
	kindPrivateKey
	kindBearer
	kindRandom
	kindURL
	kindCommand
	kindSecret
	kindPersonal
	kinds // their number
)

// SecretKind is a kind of sensitive text that the package finds.
type SecretKind struct {
	Name  string // in rules and in counts
	Mark  string // what replaces a match, unless the rules say otherwise
	Finds string
	Stays string // similar texts that are left as they are
}

// table has the kinds in their order.
var table = [kinds]SecretKind{
	kindEmail: {
		"email", Email, "an email address, also percent-encoded",
		"a module with its version (pkg@v1.2.3), git@host, the name of an image (icon@2x.png)",
	},
	kindPhone: {
		"phone", Phone, "a telephone number: behind + or 00, with an area code in brackets, grouped as in the United States, France or Germany, or behind a word such as tel or a name such as phone",
		"digits alone, dates, times, versions, network addresses, UUIDs, differences of lines (+49 lines)",
	},
	kindAddress: {
		"address", Address, "a street with a house number in English, German or French form, and a post office box",
		"names of streets without a number, names of places, file paths",
	},
	kindCard: {
		"card", Card, "the number of a payment card, in one group or several: an issuer's prefix and length with the right check digit; the first track of a magnetic stripe",
		"numbers with another check digit or prefix, Unix times, digits in words and in longer numbers",
	},
	kindIBAN: {
		"iban", IBAN, "an international bank account number, in one group or several: a country's length with the right check digits",
		"numbers with other check digits, and words of the same form",
	},
	kindToken: {
		"token", Token, "a key or token in the published form of its issuer: OpenAI, Anthropic, GitHub, GitLab, Slack, AWS, Google, Stripe, Twilio, SendGrid, npm, PyPI, Vault and some 60 others; JSON Web Tokens",
		"names that begin in the same way (sk-learn-for-beginners)",
	},
	kindPrivateKey: {
		"private-key", Token, "a private key in PEM form, also one whose end is missing",
		"public keys and certificates",
	},
	kindBearer: {
		"bearer", Token, "what follows Bearer or Basic and looks like a token",
		"prose (the bearer of news)",
	},
	kindRandom: {
		"random", Token, "32 or more letters and digits in disorder, such as keys in base64 or in hexadecimal of no usual length",
		"words and identifiers of any length; digests and ids: hexadecimal of 32, 40, 64, 96 or 128 digits in one case, UUIDs, ULIDs, base64 behind sha256- and the like",
	},
	kindURL: {
		"url", Mark, "user and password in a URL, and the signature of a signed URL",
		"URLs without them, a host with its port",
	},
	kindCommand: {
		"command", Mark, "user and password in the arguments of curl, wget, mysql, redis-cli, sshpass, docker login and openssl",
		"the same commands without them",
	},
	kindSecret: {
		"secret", Mark, "the value of a name that says password, secret, key, token, credential, cookie and the like: members of JSON and YAML, assignments, flags, elements of XML, headers, lines of .netrc",
		"truth values and null, counts (max_tokens: 512), prose about passwords",
	},
	kindPersonal: {
		"personal", Mark, "the value of a name that says email, phone, birth date, first or last name, street, passport, user data and the like",
		"the same names outside of quotes in prose",
	},
}

// Kinds returns the kinds of sensitive text that the package finds, in a fixed order.
func Kinds() []SecretKind { return append([]SecretKind(nil), table[:]...) }

// kindOf returns the kind of a name.
func kindOf(name string) (kind, bool) {
	for k := range kinds {
		if table[k].Name == name {
			return k, true
		}
	}
	return 0, false
}
