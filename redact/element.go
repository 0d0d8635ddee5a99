package redact

import (
	"strings"
)

// element is an element of XML or HTML with text in it, perhaps escaped itself.
var element = express(`(?s)(?:<|&lt;)([A-Za-z][A-Za-z0-9_.:\-]{1,63})(?:[ \t\r\n][^<>]*)?(?:>|&gt;)[ \t\r\n]{0,8}(?:<!\[CDATA\[)?([^<>&]+)(?:\]\]>|<|&|\z)`)

// elements redacts the text of elements whose names say that it is sensitive.
func (f *finder) elements(s string) string {
	out := f.patch(s)
	for at := 0; at < len(s); {
		m := element().FindStringSubmatchIndex(s[at:])
		if m == nil {
			break
		}
		name, from, to := s[at+m[2]:at+m[3]], at+m[4], at+m[5]
		at = to
		if i := strings.LastIndexByte(name, ':'); i >= 0 {
			name = name[i+1:]
		}
		value := strings.TrimSuffix(strings.TrimSpace(s[from:to]), "]]")
		l := f.level(name)
		switch {
		case l == plain || value == "" || f.marked(value) == len(value) || telling(value):
			continue
		case l == place && !postal(value), l == token && !tokenLike(value, true):
			continue
		}
		out.named(from, to, l)
	}
	return out.text()
}

// commands match users and passwords on command lines, each behind the flag that its
// program has for them.
var commands = []look{
	{kind: kindCommand, words: []string{"curl", "http", "wget"}, re: express(`\b(?:curl|https?|wget)\b(?:[^\r\n|]|\\\r?\n)*?[\s"'](?:-[A-Za-z]{0,8}[uU]|--user|--proxy-user)(?:[ =",']|\\\r?\n){0,6}([^\s"':,\[\]]{1,128}:[^\s"'\[\]]{1,256})`)},
	{kind: kindCommand, words: []string{"curl"}, re: express(`\bcurl\b(?:[^\r\n|]|\\\r?\n)*? (?:-b|--cookie) ?["']?([^\s"'=\[\]]{1,128}=[^"'\[\]\r\n]{1,512})["']`)},
	{kind: kindCommand, words: []string{"mysql", "mariadb"}, re: express(`\b(?:mysql|mysqldump|mysqladmin|mariadb)\b[^\r\n|]*? -p([^\s"'\[\]]{4,})`)},
	{kind: kindCommand, words: []string{"sshpass", "login"}, re: express(`\b(?:sshpass|(?:docker|podman|registry) login)\b[^\r\n|]*? -p ?["']?([^\s"'\[\]]{4,})`)},
	{kind: kindCommand, words: []string{"redis-cli"}, re: express(`\bredis-cli\b[^\r\n|]*? -a ["']?([^\s"'\[\]]{4,})`)},
	{kind: kindCommand, words: []string{"pass:"}, re: express(`-pass(?:in|out)? ["']?pass:([^\s"'\[\]]+)`)},
}

// named matches a name and a value that are members of one object, attributes of one
// element, lines of one item, or neighbours in a list of properties.
var named = express(`(?:\b(?i:name|key)["']?[ \t]{0,4}[:=][ \t]{0,4}["']?([A-Za-z][A-Za-z0-9_.\-]{1,63})["']?[\s,]{1,40}["']?(?i:value)["']?[ \t]{0,4}[:=][ \t]{0,4}` +
	`|\b(?i:name|key|id)[ \t]{0,4}=[ \t]{0,4}["']([A-Za-z][A-Za-z0-9_.\-]{1,63})["'][^<>]{0,100}>` +
	`|<key>([A-Za-z][A-Za-z0-9_.\-]{1,63})</key>\s{0,40}<(?:string|data)>)` +
	`(?:["']([^"']+)|([^\s"'<>,;{}\[\]]+))`)

// members redacts values whose names are beside them.
func (f *finder) members(s string) string {
	if !hasAny(s, []string{"value", "Value", "VALUE", "<key>", "<"}) {
		return s
	}
	out := f.patch(s)
	for _, m := range named().FindAllStringSubmatchIndex(s, -1) {
		name, from, to := "", m[8], m[9]
		for k := 2; k < 8; k += 2 {
			if m[k] >= 0 {
				name = s[m[k]:m[k+1]]
			}
		}
		if from < 0 {
			from, to = m[10], m[11]
		}
		l := f.level(name)
		if value := s[from:to]; l < token || f.marked(value) > 0 || telling(value) || l == token && !tokenLike(value, false) {
			continue
		}
		out.named(from, to, l)
	}
	return out.text()
}

// flag matches a flag of a command line with its value.
var flag = express(`(?:^|[\s"'])--?([A-Za-z][A-Za-z0-9_\-]{2,40})[ \t]{1,4}["']?([^\s"'<>\[\](){}|;,]{4,})`)

// flags redacts the values of flags with sensitive names. In prose a word follows the
// flag, so the value must not be a word.
func (f *finder) flags(s string) string {
	out := f.patch(s)
	for at := 0; at < len(s); {
		m := flag().FindStringSubmatchIndex(s[at:])
		if m == nil {
			break
		}
		name, from, to := s[at+m[2]:at+m[3]], at+m[4], at+m[5]
		value := s[from:to]
		if f.level(name) < token || value[0] == '-' || strings.Trim(value, "0123456789.,") == "" || !strings.ContainsAny(value, "0123456789_!$%^&*+/=@#~") {
			at = to - 1 // the character that ends it may begin the next
			if at <= 0 {
				break
			}
			continue
		}
		out.put(from, to, kindSecret)
		at = to
	}
	return out.text()
}

// opened matches the beginning of an element that contains elements or comments.
var opened = express(`<([A-Za-z][A-Za-z0-9_.:\-]{1,63})(?:[ \t\r\n][^<>]*)?>[^<>]{0,40}<[!A-Za-z]`)

// nested redacts the contents of elements with sensitive names that contain more than
// text.
func (f *finder) nested(s string) string {
	out := f.patch(s)
	for at := 0; at < len(s); {
		m := opened().FindStringSubmatchIndex(s[at:])
		if m == nil {
			break
		}
		name, from := s[at+m[2]:at+m[3]], at+strings.IndexByte(s[at+m[0]:at+m[1]], '>')+m[0]+1
		at = from
		short := name[strings.LastIndexByte(name, ':')+1:]
		if f.level(short) != secret || s[from-2] == '/' {
			continue
		}
		to := strings.Index(s[from:], "</"+name)
		if to < 0 {
			to = len(s) - from
		}
		if to > 0 && f.marked(s[from:from+to]) != to {
			out.put(from, from+to, kindSecret)
		}
		at = from + to
	}
	return out.text()
}
