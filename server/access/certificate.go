package access

import (
	"crypto/x509"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// CertificateGrants says what the holder of a client certificate may do.
//
// The names of a certificate are its subject alternative names: DNS names, URIs, mail
// addresses and IP addresses, each as text. Only a certificate without any of them has
// its subject's common name as its name. A name is compared byte by byte, without
// wildcards, and only after the chain of the certificate was verified against the
// authorities of the server's TLS configuration.
type CertificateGrants struct {
	Name   string
	Grants []Grant
}

// ParseCertificate reads what a certificate may do as NAME=GRANT, such as
// "build.example=record@build-*"; see [ParseGrant]. The first "=" ends the name. The
// error wraps [ErrGrant].
func ParseCertificate(text string) (CertificateGrants, error) {
	name, grant, found := strings.Cut(text, "=")
	if !found || name == "" {
		return CertificateGrants{}, fmt.Errorf("%w: %.80q is not NAME=SCOPE@SESSIONS", ErrGrant, text)
	}
	g, err := ParseGrant(grant)
	if err != nil {
		return CertificateGrants{}, err
	}
	return CertificateGrants{Name: name, Grants: []Grant{g}}, nil
}

// certificateNames returns the names of a certificate; see [CertificateGrants].
func certificateNames(c *x509.Certificate) []string {
	names := slices.Concat(c.DNSNames, c.EmailAddresses)
	for _, u := range c.URIs {
		names = append(names, u.String())
	}
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) == 0 && c.Subject.CommonName != "" {
		names = []string{c.Subject.CommonName}
	}
	return names
}

// byCertificate returns the caller of a verified client certificate, nil without one, or
// an error that wraps [ErrUnauthenticated] if no grant names the certificate. The
// grants of all its names count together.
func (g *Gate) byCertificate(r *http.Request) (*Caller, error) {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return nil, nil
	}
	names := certificateNames(r.TLS.PeerCertificates[0])
	var caller *Caller
	for _, name := range names {
		if grants, ok := g.certificates[name]; ok {
			if caller == nil {
				caller = &Caller{Name: "cert:" + name}
			}
			caller.Grants = append(caller.Grants, grants...)
		}
	}
	if caller == nil {
		return nil, fmt.Errorf("%w: no setting grants anything to a certificate with the names %.200q", ErrUnauthenticated, names)
	}
	return caller, nil
}
