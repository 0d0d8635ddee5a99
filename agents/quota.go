package agents

import "time"

// window is the span over which quotas count.
const window = time.Minute

// quota is what one agent has used. A use counts while less than a minute has
// passed since.
type quota struct {
	uses            []use                    // in the order of time, one for each instant
	intents, tokens int64                    // of all uses
	last            map[string]time.Duration // of the last accepted intent of a kind
}

type use struct {
	at              time.Duration
	intents, tokens int64
}

// Under a quota of more than maxExact in a window the uses of one slot, a
// thousandth of it, are joined and count as the last of them: up to 60 ms longer
// than they would each by itself. So an agent has a thousand at most, whatever
// it may ask; but for a while twice as many, if its quota has just become large.
const (
	slot     = window / 1000
	maxExact = 1000
	maxUses  = 2*maxExact + 2 // beyond it all that is new is joined
)

// use notes a use, and forgets those that no longer count.
func (q *quota) use(at time.Duration, intents, tokens int64, s *Settings) {
	q.forget(at)
	if s.QuotaIntents < 0 && s.QuotaTokens < 0 {
		return
	}
	q.intents += intents
	q.tokens += tokens
	if n := len(q.uses); n > 0 {
		last := &q.uses[n-1]
		same := last.at == at || s.coarse() && last.at/slot == at/slot
		if same || n >= maxUses {
			*last = use{at, last.intents + intents, last.tokens + tokens}
			return
		}
	}
	q.uses = append(q.uses, use{at, intents, tokens})
}

// coarse reports whether neither quota keeps the uses of a window few. Each is of
// one intent and of one token at least.
func (s *Settings) coarse() bool {
	exact := func(quota int64) bool { return quota >= 0 && quota <= maxExact }
	return !exact(s.QuotaIntents) && !exact(s.QuotaTokens)
}

func (q *quota) forget(now time.Duration) {
	i := 0
	for ; i < len(q.uses) && now-q.uses[i].at >= window; i++ {
		q.intents -= q.uses[i].intents
		q.tokens -= q.uses[i].tokens
	}
	if i > 0 {
		q.uses = append(q.uses[:0], q.uses[i:]...)
	}
}

// tally is what comes on top of what is recorded: of intents that wait, or
// that are decided in the same quantum.
type tally struct {
	intents, tokens int64
	last            map[string]time.Duration
}

// allow says whether an intent of a kind may be asked now.
func (q *quota) allow(now time.Duration, in *Intent, tokens int64, s *Settings, more *tally) *Rejection {
	intents, spent := q.intents, q.tokens
	free := window // until the first use stops counting
	for _, u := range q.uses {
		if now-u.at < window {
			free = window - (now - u.at)
			break
		}
		intents -= u.intents
		spent -= u.tokens
	}
	if more != nil {
		intents += more.intents
		spent += more.tokens
	}
	var r *Rejection
	switch {
	case s.QuotaIntents >= 0 && intents+1 > s.QuotaIntents:
		r = reject(in, ErrQuotaExceeded, "%d intents in a minute, at most %d", intents, s.QuotaIntents)
		r.Quota, r.Limit = QuotaIntents, s.QuotaIntents
	case s.QuotaTokens >= 0 && tokens > s.QuotaTokens:
		r = reject(in, ErrQuotaExceeded, "an intent of %d tokens, at most %d in a minute", tokens, s.QuotaTokens)
		r.Quota, r.Limit = QuotaTokens, s.QuotaTokens
	case s.QuotaTokens >= 0 && spent+tokens > s.QuotaTokens:
		r = reject(in, ErrQuotaExceeded, "%d and %d tokens in a minute, at most %d", spent, tokens, s.QuotaTokens)
		r.Quota, r.Limit = QuotaTokens, s.QuotaTokens
	}
	switch {
	case r == nil:
	case s.QuotaIntents == 0, s.QuotaTokens >= 0 && tokens > s.QuotaTokens:
		return r // no time makes it possible
	default:
		r.RetryAfter = free
		return r
	}
	wait := s.Cooldowns[in.Kind]
	if wait <= 0 {
		return nil
	}
	last, ok := q.last[in.Kind]
	if more != nil {
		if l, asked := more.last[in.Kind]; asked {
			last, ok = max(last, l), true
		}
	}
	if ok && now-last < wait {
		r = reject(in, ErrCooldownActive, "%s again after %v", in.Kind, wait)
		r.RetryAfter = wait - (now - last)
	}
	return r
}

func (q *quota) cool(kind string, at time.Duration) {
	if q.last == nil {
		q.last = map[string]time.Duration{}
	}
	q.last[kind] = at
}

func (t *tally) add(kind string, at time.Duration, tokens int64) {
	t.intents++
	t.tokens += tokens
	if t.last == nil {
		t.last = map[string]time.Duration{}
	}
	t.last[kind] = at
}
