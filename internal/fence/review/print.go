// SPDX-License-Identifier: Apache-2.0

package review

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/queueworker/operator/internal/fence"
	"github.com/queueworker/operator/internal/terminal"
)

// List prints keys as a table.
func List(w io.Writer, entries []Entry) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(t, "SCOPE\tKEY\tSTATE\tFOR\tQUIET\tREASON")
	for _, e := range entries {
		quiet := "no"
		if e.Quiet {
			quiet = "yes"
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", e.Scope, e.Key, e.State, age(time.Duration(e.AgeSeconds)*time.Second), quiet, e.Reason)
	}
	return t.Flush()
}

// age is short, as kubectl has it.
func age(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours())/24)
}

// Show prints all that is known of a key, and what a person may do.
func Show(w io.Writer, row fence.Row, style terminal.Style) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	line := func(name, format string, args ...any) {
		if text := fmt.Sprintf(format, args...); text != "" {
			_, _ = fmt.Fprintf(t, "%s\t%s\n", name, text)
		}
	}
	line("Scope", "%s", row.Key.Scope)
	line("Key", "%s", row.Key.ID)
	line("State", "%s", row.State)
	line("Token", "%s", row.Token)
	line("Sent as", "%s", row.SentKey())
	line("First sent", "%s", moment(row.FirstSentAt, row.ReadAt))
	line("Attempts", "%d, %d of them with the same key again; the last by %s", row.Attempt, row.Resends, row.Owner)
	if row.State == fence.Done || row.State == fence.Released {
		line("Settled", "%s by %s %s", moment(row.SettledAt, row.ReadAt), row.SettledBy, row.SettledWho)
	} else {
		line("Unknown since", "%s", moment(row.LeaseUntil, row.ReadAt))
		line("Quiet from", "%s", moment(row.QuietUntil, row.ReadAt))
	}
	line("Looked up", "%s", moment(row.CheckedAt, row.ReadAt))
	if row.Response != nil {
		line("Outcome", "%s", row.Outcome)
		line("Status", "%s", status(row.Response.Status))
		line("Provider's id", "%s", row.Response.ProviderID)
	}
	line("Reason", "%s", row.Reason)
	if err := t.Flush(); err != nil {
		return err
	}
	return advise(w, row, style)
}

func status(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// moment is a time and how far it is away.
func moment(at, now time.Time) string {
	switch {
	case at.IsZero():
		return ""
	case at.After(now):
		return fmt.Sprintf("%s (in %s)", at.UTC().Format(time.RFC3339), age(at.Sub(now)))
	}
	return fmt.Sprintf("%s (%s ago)", at.UTC().Format(time.RFC3339), age(now.Sub(at)))
}

// advise says what may be done now.
func advise(w io.Writer, row fence.Row, style terminal.Style) error {
	var text string
	switch {
	case row.State == fence.NeedsReview:
		command := fmt.Sprintf("  kubectl queueworker fence resolve %s %s --token %s", quote(row.Key.Scope), quote(row.Key.ID), row.Token)
		text = "Look at the provider for " + style.Strong(row.SentKey()) + ". If the effect is there:\n" +
			command + ` --as done --provider-id ID --why "…"` + "\nIf it is certain that it is not" + stillActing(row) + ":\n" + command + ` --as released --why "…"`
	case row.State == fence.Unknown || row.State == fence.Claimed && row.LeaseOver():
		text = "The fence is still at it: the next copy of the job or a sweep settles the key or parks it for you."
	case row.State == fence.Claimed:
		text = "An attempt is at work until " + moment(row.LeaseUntil, row.ReadAt) + "."
	default:
		return nil
	}
	_, err := fmt.Fprintln(w, "\n"+text)
	return err
}

func stillActing(row fence.Row) string {
	if row.Quiet() {
		return ""
	}
	return " (a request may act until " + moment(row.QuietUntil, row.ReadAt) + ")"
}

// quote is for a shell, where it is needed.
func quote(text string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+,="
	if text != "" && strings.Trim(text, plain) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
