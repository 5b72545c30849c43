// Package uri matches URIs to URI templates (RFC 6570, level 1, and {+name}),
// and extracts the values of their variables.
package uri

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Template is a URI, or a URI template. A variable has at least one character.
// {name} does not contain /, ? or #, and its value is decoded. {+name} can
// contain any character, and is not decoded.
type Template struct {
	// prefix is the beginning of every URI.
	prefix string
	parts  []part
}

// part is a variable and the text after it.
type part struct {
	name string
	// reserved is true if the variable can contain any character.
	reserved bool
	text     string
}

const (
	letters    = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	nameOf     = letters + "_."
	schemeOf   = letters + "+-."
	characters = letters + "-._~:/?#[]@!$&'()*+,;=%"
	delimiters = "/?#"
)

// Parse reads a URI or a template. The error is the end of a sentence that
// begins with it.
func Parse(text string) (Template, error) {
	prefix, rest, more := strings.Cut(text, "{")
	template := Template{prefix: prefix}
	scheme, _, has := strings.Cut(prefix, ":")
	if !has || scheme == "" || !strings.Contains(letters[:52], scheme[:1]) || strings.Trim(scheme, schemeOf) != "" {
		return template, errors.New(`must begin with a scheme, such as "notes:"`)
	}
	if err := check(prefix); err != nil {
		return template, err
	}
	for more {
		expression, after, closed := strings.Cut(rest, "}")
		if !closed {
			return template, errors.New(`has a "{" without a "}" after it`)
		}
		var between string
		between, rest, more = strings.Cut(after, "{")
		if between == "" && more {
			return template, fmt.Errorf("has nothing between {%s} and the next variable", expression)
		}
		name, reserved := strings.CutPrefix(expression, "+")
		if name == "" || strings.Trim(name, nameOf) != "" {
			return template, fmt.Errorf("has the variable {%s}: write {name} or {+name}, with a name of A-Z a-z 0-9 _ and .", expression)
		}
		for _, other := range template.parts {
			if other.name == name {
				return template, fmt.Errorf("has the variable %q twice", name)
			}
		}
		if err := check(between); err != nil {
			return template, err
		}
		template.parts = append(template.parts, part{name, reserved, between})
	}
	return template, nil
}

// check refuses characters that cannot be in a URI.
func check(text string) error {
	if other := strings.Trim(text, characters); other != "" {
		return fmt.Errorf("contains %q, which a URI can only contain percent-encoded", other)
	}
	return nil
}

// Variables returns the names of the variables, in order.
func (t Template) Variables() []string {
	names := make([]string, 0, len(t.parts))
	for _, part := range t.parts {
		names = append(names, part.name)
	}
	return names
}

// Values returns the values of the variables in a URI, and whether the URI
// matches. If it matches in several ways, each variable, from the left, is as
// short as possible.
func (t Template) Values(uri string) (map[string]string, bool) {
	rest, fits := strings.CutPrefix(uri, t.prefix)
	if !fits || len(t.parts) == 0 {
		return map[string]string{}, fits && rest == ""
	}
	m := match{parts: t.parts, uri: rest, dead: map[[2]int]bool{}, ends: make([]int, len(t.parts))}
	if !m.from(0, 0) {
		return nil, false
	}
	values := make(map[string]string, len(t.parts))
	start := 0
	for i, part := range t.parts {
		value := rest[start:m.ends[i]]
		start = m.ends[i] + len(part.text)
		if !part.reserved {
			if value, fits = decode(value); !fits {
				return nil, false
			}
		}
		values[part.name] = value
	}
	return values, true
}

// match looks for the ends of the variables in a URI.
type match struct {
	parts []part
	uri   string
	// dead are the parts and offsets from which nothing matches. Each is tried
	// only once.
	dead map[[2]int]bool
	ends []int
}

// from reports whether the parts, starting with one, match the URI from an
// offset to its end.
func (m *match) from(n, start int) bool {
	if n == len(m.parts) {
		return start == len(m.uri)
	}
	if m.dead[[2]int{n, start}] {
		return false
	}
	part, last := m.parts[n], n == len(m.parts)-1
	for end := start + 1; end <= len(m.uri); end++ {
		if !part.reserved && strings.IndexByte(delimiters, m.uri[end-1]) >= 0 {
			break
		}
		if last && end+len(part.text) != len(m.uri) || !strings.HasPrefix(m.uri[end:], part.text) {
			continue
		}
		if m.from(n+1, end+len(part.text)) {
			m.ends[n] = end
			return true
		}
	}
	m.dead[[2]int{n, start}] = true
	return false
}

// decode decodes percent-encoding, unless the result is not text. (net/url would
// make a plugin larger.)
func decode(text string) (string, bool) {
	var decoded strings.Builder
	for {
		before, after, more := strings.Cut(text, "%")
		decoded.WriteString(before)
		if !more {
			return decoded.String(), utf8.ValidString(decoded.String())
		}
		const digits = 2
		if len(after) < digits {
			return "", false
		}
		code, err := strconv.ParseUint(after[:digits], 16, 8)
		if err != nil {
			return "", false
		}
		decoded.WriteByte(byte(code))
		text = after[digits:]
	}
}
