package peers

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"mailtree/maildir/claim"
	"mailtree/maildir/clock"
	"mailtree/maildir/history"
	"mailtree/maildir/refusal"
)

// claimPatience is how long a claim request waits for the list that the machines share.
const claimPatience = 30 * time.Second

// remoteError reports that the shared list could not be read or changed.
type remoteError struct {
	err    error
	unsure bool // the list may contain the claim
}

func (e *remoteError) Error() string { return e.err.Error() }

func (e *remoteError) Unwrap() error { return e.err }

// Grant creates or renews claims if the mail is shared with other machines. See claims.Claims.Grant.
func (sy *Sync) Grant(ctx context.Context, r *claim.Request) (*claim.Result, error) {
	if err := sy.mail.NeedAgent(ctx, refusal.Agent, r.Agent); err != nil {
		return nil, err
	}
	if err := sy.mail.CheckMachine(ctx, r.Agent); err != nil {
		return nil, err
	}
	var res *claim.Result
	err := sy.withClaims(ctx, func(ctx context.Context) (err error) {
		res, err = sy.runClaimRounds(ctx, r)
		return err
	})
	if err == nil {
		return res, nil
	}
	var refused *refusal.Error
	if errors.As(err, &refused) {
		return nil, err
	}
	away := &remoteError{err: err}
	errors.As(err, &away)
	if !sy.mail.Store.ClaimAlone {
		if errors.Is(err, history.ErrDeclined) {
			return nil, refuseDeclined(away.err)
		}
		what := refusal.Unavailable("Nothing was claimed: the server cannot fetch the other machines' claims " +
			"({why}). Try again in a moment; {claim without the others}.")
		if away.unsure {
			what = refusal.Unavailable("The other machines may or may not have received the claim: the shared " +
				"repository can no longer be reached ({why}). Claim the same paths again in a moment, which renews " +
				"the claim if it was granted; {claim without the others}.")
		}
		return nil, &refusal.Error{What: what, Why: away.Error(), Err: away.err}
	}
	if res, err = sy.claims.Grant(ctx, r); err == nil {
		res.Alone = away.Error()
	}
	return res, err
}

// claimsDeclined explains why machines that share their mail do not share their claims.
const claimsDeclined = "The host of the shared repository rejects refs under refs/mailtree/, which machines " +
	"use to share their claims. Allow these refs there, or share the mail through another host."

// refuseDeclined returns the refusal for an action that needs the other machines' claims but cannot get them, because
// the host of the shared repository rejects the refs for claims.
func refuseDeclined(err error) error {
	return &refusal.Error{
		What: refusal.Unavailable("Nothing was claimed: {why}. Allow these refs on that host, or share the mail " +
			"through another host; {claim without the others}."),
		Why: history.ErrDeclined.Error(),
		Err: err,
	}
}

// withClaims waits for a running round to end, and then calls f. The wait and f together may take up to claimPatience.
// Canceling the caller's context has no effect, because after a push f must still update the claim files.
func (sy *Sync) withClaims(ctx context.Context, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), claimPatience, errors.New("another sync took too long"))
	defer cancel()
	return sy.inTurn(ctx, func() error { return f(ctx) })
}

// runClaimRounds synchronizes the shared list and the local claim files. It adds local claims to the list, removes
// released ones, and applies remote changes to the files. res is the result of the request ask, or nil if ask is nil.
// The caller must hold sy.turn.
//
// The first try uses the most recently fetched list. runClaimRounds refuses a request only after a fetch. It returns
// remoteError, any refusal from checkFormat, or errors from the history and the writer.
func (sy *Sync) runClaimRounds(ctx context.Context, ask *claim.Request) (res *claim.Result, err error) {
	if err := sy.refusedFormat(); err != nil {
		return nil, err
	}
	unsure := false
	for try := range syncTries {
		if try > 0 {
			if err := clock.Sleep(ctx, rand.N(20*time.Millisecond<<min(try, 6))); err != nil {
				return nil, &remoteError{err, unsure}
			}
			if err := sy.mail.History.FetchClaims(ctx); err != nil {
				return nil, &remoteError{err, unsure}
			}
		}
		var r *claimRound
		if r, err = sy.planClaims(ctx, ask); err != nil {
			return nil, err
		}
		if try == 0 && ask != nil && (ask.DryRun || len(r.res.Conflicts) > 0) {
			continue // the list may have changed
		}
		switch err = r.push(ctx); {
		case err == nil:
			sy.note(func(s *SyncState) { s.Claims = "" })
			if ok, err := r.apply(ctx, ask); ok || err != nil {
				return r.res, err
			}
			err = errFilesMoved
		case errors.Is(err, history.ErrBehind):
		case errors.Is(err, history.ErrDeclined):
			sy.note(func(s *SyncState) { s.Claims = claimsDeclined })
			return nil, &remoteError{err, false}
		case errors.Is(err, history.ErrNoContact):
			return nil, &remoteError{err, unsure}
		default:
			unsure = true
		}
	}
	if unsure {
		return nil, &remoteError{err, unsure}
	}
	return nil, &refusal.Error{What: refusal.Unavailable("Nothing was claimed: other machines keep changing their " +
		"claims ({why}). Try again in a moment."),
		Why: err.Error(), Err: err}
}

// SyncClaims synchronizes this machine's claims with the other machines' claims. If the shared repository cannot be
// reached, SyncClaims returns ErrUnavailable, unless this machine may grant claims alone (Config.ClaimAlone).
func (sy *Sync) SyncClaims(ctx context.Context) error {
	err := sy.withClaims(ctx, func(ctx context.Context) error {
		if err := sy.mail.History.FetchClaims(ctx); err != nil {
			return err
		}
		_, err := sy.runClaimRounds(ctx, nil)
		return err
	})
	if err == nil || sy.mail.Store.ClaimAlone {
		return nil
	}
	if errors.Is(err, history.ErrDeclined) {
		return refuseDeclined(err)
	}
	return &refusal.Error{
		What: refusal.Unavailable("The server cannot fetch the other machines' claims ({why}). Try again in " +
			"a moment; {claim without the others}."),
		Why: err.Error(),
		Err: err,
	}
}

// KeepRegained adds to the shared list the claims that were restored by undoing a release. It returns ErrConflict if
// another agent has claimed one of them since then.
func (sy *Sync) KeepRegained(ctx context.Context, done *history.Done) error {
	if err := sy.SyncClaims(ctx); err != nil {
		return err
	}
	claims, err := sy.claims.OfDone(done)
	if err != nil {
		return err
	}
	live, err := sy.claims.List(ctx, false)
	for _, c := range claims {
		has := func(row claim.Row) bool { return row.Agent == c.Agent && row.Pattern == c.Pattern }
		if err == nil && !slices.ContainsFunc(live, has) {
			err = &refusal.Error{What: refusal.ClaimTaken, Name: c.Pattern, Other: "Somebody"}
		}
	}
	return err
}
