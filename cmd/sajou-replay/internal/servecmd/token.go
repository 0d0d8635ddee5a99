package servecmd

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/server/access"
)

// defaultLife is how long a token is valid unless the command says otherwise.
const defaultLife = 90 * 24 * time.Hour

// Token returns the command "token" with its subcommands.
func Token(a *cli.App) *cobra.Command {
	var file string
	tokens := func(cmd *cobra.Command) (string, error) {
		if file != "" {
			return file, nil
		}
		s, _, err := (&settingFlags{}).resolve(cmd)
		if err != nil {
			return "", err
		}
		return tokensPath(a, s.Server.Access.Tokens), nil
	}
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Create, list and revoke the access tokens of the server",
		Long: `An access token lets a caller do some things with some sessions of the server. The
caller sends it with each request:
  Authorization: Bearer TOKEN

The tokens of a store are in a file beside it, named like the store with
".tokens", that only its owner can read. --tokens FILE names another one, and so
do SAJOU_TOKENS and the member tokens of the file of settings (SAJOU_CONFIG), as
for "serve". The file has the SHA-256 of each token, not the token. A running
server notices every change at once: a revoked or expired token gets 401, and its
open streams end within a second.

The scopes are
  record   append signals
  read     read entries, states, pictures and streams, and start searches
  act      submit intents as one agent, and see what this agent sees
  tick     move the time of a session, and append the drafts of a simulation
  define   bring declarations, policies and episodes into force; direct
  admin    read metrics and security events`,
		Example: `  sajou-replay token create ci --scope record --on 'build-*'
  sajou-replay token ls
  sajou-replay token revoke ci`,
		Args: cli.GroupArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().StringVar(&file, "tokens", "", "keep the tokens in `FILE`, not in STORE.tokens")
	cmd.AddCommand(tokenCreate(a, tokens), tokenLs(a, tokens), tokenRevoke(a, tokens))
	return cmd
}

func tokenCreate(a *cli.App, tokensFile func(*cobra.Command) (string, error)) *cobra.Command {
	var scopes, on []string
	var agent, tenant string
	var life time.Duration
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create an access token and show it once",
		Long: `Create makes an access token and writes it to stdout. It is shown this once: the
file has its hash alone. NAME stands in logs; it has no spaces.

--scope and --on may be repeated. Every scope holds for every pattern of --on:
the name of a session, or the beginning of a name followed by *. Names are
compared byte by byte.

The exit code is 1 if a token of this name is valid, or the file cannot be used.`,
		Example: `  sajou-replay token create tap --scope record
  sajou-replay token create ann --scope act --agent ann --on night-shift
  sajou-replay token create eve --scope read,define --on 'story-*' --for 24h`,
		Args: cli.Between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(scopes) == 0 {
				return cli.Misuse("name what the token may do with --scope, such as --scope record")
			}
			if life < 0 {
				return cli.Misuse("--for %v: must be 0 or more", life)
			}
			var grants []access.Grant
			for _, s := range scopes {
				g := access.Grant{Scope: access.Scope(s), Sessions: on}
				if g.Scope == access.ScopeAct {
					g.Agent = agent
				}
				grants = append(grants, g)
			}
			if agent != "" && !hasAct(grants) {
				return cli.Misuse("--agent belongs to --scope act")
			}
			now := a.Clock()()
			var expires time.Time
			if life > 0 {
				expires = now.Add(life)
			}
			text, token, err := access.NewToken(a.Secrets(), args[0], grants, now, expires)
			if errors.Is(err, access.ErrToken) || errors.Is(err, access.ErrGrant) {
				return cli.Misuse("%w", err)
			}
			if err != nil {
				return err
			}
			if token.Tenant = tenant; tenant != "" {
				if err := token.Check(); err != nil {
					return cli.Misuse("%w", err)
				}
			}
			path, err := tokensFile(cmd)
			if err != nil {
				return err
			}
			if err := access.ChangeTokens(path, func(tokens []access.AccessToken) ([]access.AccessToken, error) {
				return access.AddToken(tokens, token, now)
			}); err != nil {
				return err
			}
			fmt.Fprintf(a.Stderr, "sajou-replay: keep it, it is not shown again; %s may %s%s\n", termtext.Printable(token.Name), termtext.Printable(grantsText(token)), until(token))
			return a.Output().One(text, createdToken{text, viewToken(token, now)})
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&scopes, "scope", nil, "allow `SCOPE`: record, read, act, tick, define or admin")
	flags.StringArrayVar(&on, "on", []string{"*"}, "for the sessions that match `PATTERN`")
	flags.StringVar(&agent, "agent", "", "act as agent `NAME`; * means every agent")
	flags.StringVar(&tenant, "tenant", "", "share the bound of requests of the tenant `NAME`")
	flags.DurationVar(&life, "for", defaultLife, "let it expire after this time; 0 means never")
	return cmd
}

func hasAct(grants []access.Grant) bool {
	for _, g := range grants {
		if g.Scope == access.ScopeAct {
			return true
		}
	}
	return false
}

// createdToken is a new token in JSON. It has the text that is not shown again.
type createdToken struct {
	Token string `json:"token"`
	tokenView
}

// tokenView is a token in JSON.
type tokenView struct {
	Name    string             `json:"name"`
	ID      string             `json:"id"`
	Status  access.TokenStatus `json:"status"`
	Tenant  string             `json:"tenant,omitempty"`
	Grants  []access.Grant     `json:"grants"`
	Created time.Time          `json:"created"`
	Expires time.Time          `json:"expires,omitzero"`
	Revoked time.Time          `json:"revoked,omitzero"`
}

func viewToken(t *access.AccessToken, now time.Time) tokenView {
	return tokenView{t.Name, t.ID, t.Status(now), t.Tenant, t.Grants, t.Created, t.Expires, t.Revoked}
}

func grantsText(t *access.AccessToken) string {
	texts := make([]string, len(t.Grants))
	for i := range t.Grants {
		texts[i] = t.Grants[i].String()
	}
	return strings.Join(texts, " ")
}

// until says when a token expires.
func until(t *access.AccessToken) string {
	if t.Expires.IsZero() {
		return ""
	}
	return ", until " + t.Expires.Format(time.RFC3339)
}

func tokenLs(a *cli.App, tokensFile func(*cobra.Command) (string, error)) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the access tokens",
		Long: `Ls lists the access tokens: name, id, status, grants, and when each expires. The
id is the part of the token between its underscores. A grant is written as
SCOPE@SESSIONS, or act:AGENT@SESSIONS.

The status is live, expired or revoked. Tokens that are not live stay in the
list, so that a server recognizes their use.`,
		Example: `  sajou-replay token ls
  sajou-replay token ls -o jsonl`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			file, err := tokensFile(cmd)
			if err != nil {
				return err
			}
			tokens, err := access.ReadTokens(file)
			if err != nil {
				return err
			}
			now := a.Clock()()
			o := a.Output()
			for i := range tokens {
				t := &tokens[i]
				text := fmt.Sprintf("%-16s  %s  %-7s  %s%s", t.Name, t.ID, t.Status(now), grantsText(t), until(t))
				if err := o.ItemOf(termtext.Printable(text), viewToken(t, now)); err != nil {
					return err
				}
			}
			return o.End()
		},
	}
	return cmd
}

func tokenRevoke(a *cli.App, tokensFile func(*cobra.Command) (string, error)) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "revoke NAME...",
		Short: "Revoke access tokens",
		Long: `Revoke ends access tokens by their names or ids. A running server refuses them
at once, and ends their open streams within a second. A name that has no live
token changes nothing, and the exit code is 4.`,
		Example: `  sajou-replay token create lost --scope read
  sajou-replay token revoke lost`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := tokensFile(cmd)
			if err != nil {
				return err
			}
			now := a.Clock()()
			var revoked []access.AccessToken
			err = access.ChangeTokens(file, func(tokens []access.AccessToken) ([]access.AccessToken, error) {
				for _, name := range args {
					next, token, err := access.RevokeToken(tokens, name, now)
					if err != nil {
						return nil, cli.Fail(cli.ExitNotFound, "%w", err)
					}
					tokens, revoked = next, append(revoked, token)
				}
				return tokens, nil
			})
			if err != nil {
				return err
			}
			o := a.Output()
			for i := range revoked {
				if err := o.ItemOf(termtext.Printable("revoked "+revoked[i].Name+" ("+revoked[i].ID+")"), viewToken(&revoked[i], now)); err != nil {
					return err
				}
			}
			return o.End()
		},
	}
	return cmd
}
