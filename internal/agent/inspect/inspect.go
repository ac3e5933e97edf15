// SPDX-License-Identifier: Apache-2.0

// Package inspect asks the application in the image what a worker would run
// with. It starts PHP on scripts of ours, under limits, and collects what they
// say; it judges nothing.
package inspect

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/queueworker/operator/internal/agent/artisan"
	"github.com/queueworker/operator/internal/agent/workdir"
	"github.com/queueworker/operator/internal/preflight"
	"github.com/queueworker/operator/internal/timeoutchain"
)

//go:embed php/*.php
var embedded embed.FS

const script = "facts.php"

// mostRestarts is how many files may end the process that lists classes.
const mostRestarts = 25

// DefaultLimit is how long one PHP process may take.
const DefaultLimit = 30 * time.Second

// Plan is what to ask, and how to start PHP.
type Plan struct {
	PHP     []string // the words before artisan
	Artisan string
	Options []string // the words after artisan

	Connection           string // empty = the application's default
	Queue                string // empty = the connection's own
	FenceTable, FenceKey string // both empty = no fence table

	Scripts string   // where the PHP files are installed
	Dir     string   // working directory; empty = this process's
	Env     []string // the worker's
	Limit   time.Duration
}

// For plans the inspection of the application that a worker's command starts.
func For(runtime timeoutchain.Runtime, declared preflight.Declared, command []string) (Plan, error) {
	words, err := artisan.Read(runtime, command)
	if err != nil {
		return Plan{}, fmt.Errorf("%w: give them as words of their own, or switch the preflight off", err)
	}
	p := Plan{
		PHP: words.PHP, Artisan: words.Artisan, Options: words.Options,
		Connection: declared.Connection, Limit: DefaultLimit,
	}
	if len(declared.Queues) > 0 {
		p.Queue = declared.Queues[0]
	}
	if declared.Fence == timeoutchain.FenceTable && declared.FenceTable != "" {
		p.FenceTable, p.FenceKey = declared.FenceTable, declared.FenceKey
	}
	return p, nil
}

// Install writes the PHP files to a directory.
func Install(dir string) error {
	files, err := fs.Sub(embedded, "php")
	if err != nil {
		return err
	}
	return workdir.InstallPHP(dir, files)
}

// Inspect asks. What goes wrong is part of the facts.
func Inspect(p Plan) preflight.Facts {
	facts := preflight.Facts{Light: p.light()}
	if facts.Light.App == nil {
		return facts // no process would get further
	}
	facts.Booted = p.booted()
	if facts.Light.App.Laravel.CachedConfig != "" {
		uncached := p
		uncached.Env = without(p.Env, "APP_CONFIG_CACHE")
		uncached.Env = append(uncached.Env, "APP_CONFIG_CACHE=/nonexistent/config.php")
		reading := uncached.ask(question{Stage: "light"})
		facts.Uncached = &reading
	}
	return facts
}

func without(env []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool { return strings.HasPrefix(v, name+"=") })
}

// question is the script's argument, see facts.php.
type question struct {
	Stage      string   `json:"stage"`
	Classes    bool     `json:"classes"`
	Skip       int      `json:"skip"`
	Artisan    string   `json:"artisan"`
	Connection string   `json:"connection"`
	Queue      string   `json:"queue"`
	Options    []string `json:"options"`
	Fence      *fence   `json:"fence"`
}

type fence struct {
	Table string `json:"table"`
	Key   string `json:"key"`
}

func (p Plan) ask(q question) preflight.Reading {
	q.Artisan, q.Connection, q.Queue, q.Options = p.Artisan, p.Connection, p.Queue, p.Options
	if p.FenceTable != "" {
		q.Fence = &fence{p.FenceTable, p.FenceKey}
	}
	text, err := json.Marshal(q)
	if err != nil { // texts and numbers only: cannot happen
		return preflight.Reading{Ending: preflight.Ending{How: preflight.Unread, Failure: preflight.Failure{Message: err.Error()}}}
	}
	words := append(slices.Clone(p.PHP), filepath.Join(p.Scripts, script), string(text))
	return process{words: words, dir: p.Dir, env: p.Env, limit: p.Limit}.read()
}

// light reads the configuration and lists the job classes. A file that ends the
// process is taken down, and another process goes on behind it.
func (p Plan) light() preflight.Reading {
	all := p.ask(question{Stage: "light", Classes: true})
	next := all
	for range mostRestarts {
		if all.App == nil || next.Loading == nil || next.Ending.How == preflight.Ended {
			break
		}
		all.Broken = append(all.Broken, preflight.Broken{Name: next.Loading.Class, Failure: culprit(next)})
		if next.Ending.How == preflight.TimedOut {
			break // the others may wait as long
		}
		next = p.ask(question{Stage: "classes", Classes: true, Skip: all.Loaded})
		all.Classes = append(all.Classes, next.Classes...)
		all.Broken = append(all.Broken, next.Broken...)
		all.Loaded += next.Loaded
		all.Ending = next.Ending
	}
	return all
}

// culprit is why the last class that was being loaded ended the process.
func culprit(r preflight.Reading) preflight.Failure {
	failure := r.Ending.Failure
	switch r.Ending.How {
	case preflight.Exited:
		failure.Message = strings.TrimSuffix("its file ends the process: "+failure.Message, ": ")
	case preflight.TimedOut:
		failure.Message = "loading it takes longer than the time limit"
	}
	if failure.File == "" {
		failure.File, failure.Line = r.Loading.File, 1
	}
	return failure
}

// booted starts the application and asks its servers. A question on which the
// process ended has no answer.
func (p Plan) booted() preflight.Reading {
	r := p.ask(question{Stage: "booted"})
	if r.App != nil && r.Ending.How != preflight.Ended && r.Asking != "" {
		failure := r.Ending.Failure
		if r.Ending.How == preflight.TimedOut || failure.Message == "" {
			failure.Message = "no answer within the time limit"
		}
		r.Unanswered(r.Asking, failure)
	}
	return r
}
