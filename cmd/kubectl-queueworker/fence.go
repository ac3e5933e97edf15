// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"
	"time"

	"github.com/spf13/cobra"

	"github.com/queueworker/operator/internal/fence"
	"github.com/queueworker/operator/internal/fence/review"
	"github.com/queueworker/operator/internal/fence/table"
)

// storeVariable keeps the password out of the list of processes.
const storeVariable = "QUEUEWORKER_FENCE_STORE"

// storeLimit ends a command whose database does not answer.
const storeLimit = 30 * time.Second

type fenceFlags struct{ store, table string }

func newFence() *cobra.Command {
	flags := &fenceFlags{}
	command := &cobra.Command{
		Use:   "fence",
		Short: "Show the keys of which nobody knows the outcome, and settle them",
		Long: `Show the keys of which nobody knows the outcome, and settle them.

The fence parks a key when neither the provider nor time can tell whether the
effect happened. The commands speak with the fence's database, whose URL is in
the variable ` + storeVariable + `, as postgres://USER:PASSWORD@HOST/DATABASE.`,
		Example: `  kubectl queueworker fence list
  kubectl queueworker fence show stripe order-1/charge`,
	}
	command.PersistentFlags().StringVar(&flags.store, "store", "", "URL of the fence's database: postgres://, mysql://, mariadb:// or sqlite:; default $"+storeVariable)
	command.PersistentFlags().StringVar(&flags.table, "table", "queueworker_fence", "the fence's table, name or schema.name")
	command.AddCommand(newFenceList(flags), newFenceShow(flags), newFenceResolve(flags))
	return command
}

// with opens the table for one command. The table is never created here.
func (f *fenceFlags) with(ctx context.Context, do func(context.Context, table.Table) error) error {
	text := f.store
	if text == "" {
		text = os.Getenv(storeVariable)
	}
	if text == "" {
		return errors.New("which database? Set " + storeVariable + " or --store to its URL, as postgres://USER:PASSWORD@HOST/DATABASE")
	}
	c, err := table.FromURL(text)
	if err != nil {
		return err
	}
	c.Table, c.Existing = f.table, true
	ctx, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	t, err := table.Open(ctx, c)
	if err != nil {
		return err
	}
	defer func() { _ = t.Close() }()
	return do(ctx, t)
}

func newFenceList(flags *fenceFlags) *cobra.Command {
	which := fence.Unsettled{}
	var output string
	command := &cobra.Command{
		Use:   "list",
		Short: "List the keys that are not settled, oldest first",
		Long: `List the keys that are not settled, oldest first.

Only needs_review waits for you; the others are still looked after by the
fence. A claim is listed once its lease is over: its owner is gone.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if output != "text" && output != "json" {
				return fmt.Errorf("--output is %q: expected text or json", output)
			}
			if which.Limit < 1 {
				return fmt.Errorf("--limit is %d: expected at least 1", which.Limit)
			}
			return flags.with(command.Context(), func(ctx context.Context, t table.Table) error {
				rows, err := t.Unsettled(ctx, which)
				if err != nil {
					return err
				}
				return printList(command, review.EntriesOf(rows), output)
			})
		},
	}
	command.Flags().StringVar(&which.Scope, "scope", "", "only keys of this provider or kind of claim")
	command.Flags().IntVar(&which.Limit, "limit", 100, "at most so many")
	command.Flags().StringVarP(&output, "output", "o", "text", "output format: text or json")
	return command
}

func printList(command *cobra.Command, entries []review.Entry, output string) error {
	switch {
	case output == "json":
		encoder := json.NewEncoder(command.OutOrStdout())
		encoder.SetIndent("", "  ")
		return encoder.Encode(entries)
	case len(entries) == 0:
		fmt.Fprintln(command.ErrOrStderr(), "Every key is settled or at work.")
		return nil
	}
	return review.List(command.OutOrStdout(), entries)
}

func newFenceShow(flags *fenceFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "show SCOPE KEY",
		Short: "Show all that is known of one key, and what may be done",
		Args:  cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			return flags.with(command.Context(), func(ctx context.Context, t table.Table) error {
				row, err := t.Read(ctx, fence.Key{Scope: args[0], ID: args[1]})
				if errors.Is(err, fence.ErrNoRow) {
					return fmt.Errorf("there is no key %q of %q; keys are compared byte by byte", args[1], args[0])
				}
				if err != nil {
					return err
				}
				return review.Show(command.OutOrStdout(), row, styleOf(command.OutOrStdout()))
			})
		},
	}
}

type resolveFlags struct {
	as, token string
	decision  review.Decision
}

func newFenceResolve(flags *fenceFlags) *cobra.Command {
	r := resolveFlags{}
	command := &cobra.Command{
		Use:   "resolve SCOPE KEY",
		Short: "Settle a key that waits for a person",
		Long: `Settle a key that waits for a person.

--as done says that the effect happened: later copies of the job are told so.
--as released says that it did not and cannot any more: the next copy calls the
provider. The token is the one that was shown, so that a decision never hits
another attempt. Who decided and why is kept with the key.`,
		Example: `  kubectl queueworker fence resolve stripe order-1/charge --token 5f0c… --as done --provider-id ch_1 --why "seen in the dashboard"
  kubectl queueworker fence resolve stripe order-2/charge --token 9a31… --as released --why "the provider's support found nothing"`,
		Args: cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			if err := r.read(args); err != nil {
				return err
			}
			return flags.with(command.Context(), func(ctx context.Context, t table.Table) error {
				if err := review.Resolve(ctx, t, r.decision); err != nil {
					return err
				}
				fmt.Fprintf(command.OutOrStdout(), "%s %s is %s.\n", args[0], args[1], r.as)
				return nil
			})
		},
	}
	f := command.Flags()
	f.StringVar(&r.as, "as", "", "done or released; required")
	f.StringVar(&r.token, "token", "", "the token that was shown; required")
	f.StringVar(&r.decision.ProviderID, "provider-id", "", "the provider's own id for the effect; required with --as done")
	f.StringVar(&r.decision.Why, "why", "", "why you are sure; required")
	f.StringVar(&r.decision.Who, "who", userName(), "who decides")
	f.BoolVar(&r.decision.Force, "force", false, "release although a request may still act: the effect may happen twice")
	return command
}

// read judges the flags before any database is asked.
func (r *resolveFlags) read(args []string) error {
	d := &r.decision
	d.Key, d.Done = fence.Key{Scope: args[0], ID: args[1]}, r.as == "done"
	switch {
	case r.as != "done" && r.as != "released":
		return fmt.Errorf("--as is %q: expected done (the effect happened) or released (it did not, and cannot any more)", r.as)
	case d.Done && d.ProviderID == "":
		return errors.New("--provider-id is required with --as done: it is what later copies of the job are told, and the proof that you saw the effect")
	case d.Done && d.Force:
		return errors.New("--force is for --as released: an effect that happened needs none")
	case !d.Done && d.ProviderID != "":
		return errors.New("--provider-id names an effect, and --as released says that there is none")
	case d.Why == "":
		return errors.New("--why is required: say why you are sure; it is kept with the key")
	case d.Who == "":
		return errors.New("--who is required here: this machine does not say who you are")
	}
	var err error
	if d.Token, err = fence.ParseToken(r.token); err != nil {
		return fmt.Errorf("--token: %w: take the one of `kubectl queueworker fence show %s %s`", err, args[0], args[1])
	}
	return nil
}

func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return os.Getenv("USER")
}
