// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"slices"
	"strings"

	"github.com/queueworker/operator/internal/timeoutchain"
)

var phpMissing = Rule{
	ID: "php-missing", Severity: timeoutchain.Error,
	Doc: timeoutchain.Doc{
		When:   "The program that starts the worker (the first word of its command) is not in the image.",
		Why:    "No worker could start either.",
		Remedy: "set worker.php to the PHP of the image, or put it into the PATH",
	},
	check: func(in *inspection) []Finding {
		if in.facts.Light.Ending.How != NotStarted {
			return nil
		}
		return []Finding{{
			Link: timeoutchain.LinkPHP, Problem: in.facts.Light.Ending.Failure.Message,
			Consequence: "no worker can start in this image", Fix: "set worker.php to the PHP of the image, or put it into its PATH",
		}}
	},
}

var applicationMissing = Rule{
	ID: "application-missing", Severity: timeoutchain.Error,
	Doc: timeoutchain.Doc{
		When:   "The `artisan` of the worker's command, or `vendor/autoload.php` beside it, is not there. A path without a leading slash starts in the container's working directory.",
		Why:    "The worker is started by that file. A wrong working directory is the usual cause, and a volume that hides the application another.",
		Remedy: "set the container's workingDir to the application's folder, or worker.artisan to the whole path",
	},
	check: func(in *inspection) []Finding {
		missing := in.facts.Light.Missing
		if missing == nil {
			return nil
		}
		return []Finding{{
			Link:        timeoutchain.LinkArtisan,
			Problem:     fmt.Sprintf("there is no file %s (working directory %s)", missing.File, missing.Directory),
			Consequence: "the application is not where the worker's command looks for it",
			Fix:         "set workingDir to the application's folder, or worker.artisan to the whole path",
		}}
	},
}

var bootFailed = Rule{
	ID: "boot-failed", Severity: timeoutchain.Error,
	Doc: timeoutchain.Doc{
		When:   "The application's configuration cannot be loaded, or its console kernel does not start. Not verified where the error says that a server did not answer.",
		Why:    "A worker takes the same steps and meets the same error. The message is the application's own, its first line.",
		Remedy: "repair what the error names",
	},
	check: func(in *inspection) []Finding {
		for _, stage := range []struct {
			reading Reading
			what    string
		}{{in.facts.Light, "the application's configuration cannot be loaded"}, {in.facts.Booted, "the application does not start"}} {
			ending := stage.reading.Ending
			if stage.reading.App != nil || ending.How != Failed && ending.How != Exited && ending.How != Unread || outOfMemory(ending) {
				continue
			}
			finding := Finding{Problem: stage.what + ": " + ending.Failure.String(), Consequence: "a worker meets the same error", Fix: "repair what the error names"}
			if ending.How == Exited {
				finding.Problem = fmt.Sprintf("%s, its own code ends the process: %s", stage.what, orNothing(ending.Failure.Message))
			}
			if unreachable(ending.Failure) {
				finding.Severity, finding.Consequence, finding.Fix = Unverified, "a server did not answer, so only the files were read", ""
			}
			return []Finding{finding}
		}
		return nil
	},
}

func orNothing(text string) string {
	if text == "" {
		return "it printed nothing"
	}
	return text
}

// unreachableTexts are how database and Redis clients say, in small letters,
// that a server does not answer. Refused passwords and missing databases are
// not among them.
var unreachableTexts = []string{
	"connection refused", "timed out", "no route to host", "network is unreachable", "getaddrinfo",
	"name or service not known", "temporary failure in name resolution", "could not translate host name",
	"went away", "lost connection", "read error on connection", "[2002]", "[2003]", "[2006]",
	"could not connect to server", "connection to server", "starting up", "shutting down", "loading redis",
}

// clientErrors are the exceptions of the clients that may say so.
var clientErrors = []string{
	"PDOException", "QueryException", "RedisException", "RedisClusterException", "ConnectionException", "ConnectException", "AwsException", "SqsException",
}

func unreachable(f Failure) bool {
	within := func(text string) func(string) bool {
		return func(part string) bool { return strings.Contains(text, part) }
	}
	return slices.ContainsFunc(clientErrors, within(f.Class)) && slices.ContainsFunc(unreachableTexts, within(strings.ToLower(f.Message)))
}

func outOfMemory(e Ending) bool {
	return e.How == OOMKilled || strings.HasPrefix(e.Failure.Message, "Allowed memory size of") || strings.HasPrefix(e.Failure.Message, "Out of memory")
}

var unfinished = Rule{
	ID: "preflight-unfinished", Severity: timeoutchain.Error, Passing: true,
	Doc: timeoutchain.Doc{
		When:   "PHP did not come to an end: it took longer than the limit (30 s for each of its processes), was killed, ran out of memory, or printed more facts than are read (4 MiB).",
		Why:    "Nothing is known about the image then, so the worker does not start. The pod tries again; unlike other errors this one may go away by itself.",
		Remedy: "give the container more memory, or find out what the application does while it starts",
	},
	check: func(in *inspection) []Finding {
		for _, stage := range []struct {
			reading Reading
			what    string
		}{{in.facts.Light, "reading the configuration"}, {in.facts.Booted, "starting the application"}} {
			if stage.reading.App != nil {
				continue
			}
			if text := why(stage.reading.Ending); text != "" {
				return []Finding{{
					Problem: fmt.Sprintf("%s: %s", stage.what, text), Consequence: "whether the image keeps the declared chain is not known", Fix: fixFor(stage.reading.Ending),
				}}
			}
		}
		return nil
	},
}

// why says how a process failed to come to its end; empty where it did.
func why(e Ending) string {
	said := ""
	if e.Failure.Message != "" {
		said = "; its last words: " + e.Failure.Message
	}
	switch {
	case e.How == OOMKilled:
		return "the kernel killed PHP because the container ran out of memory"
	case outOfMemory(e):
		return "PHP ran out of memory: " + e.Failure.String()
	case e.How == TimedOut:
		return "PHP took longer than the time limit and was killed" + said
	case e.How == Killed:
		return "PHP was killed" + said
	case e.How == TooMuch:
		return "PHP said more than is read" + said
	default:
		return ""
	}
}

func fixFor(e Ending) string {
	if outOfMemory(e) {
		return "raise the container's memory limit or PHP's memory_limit"
	}
	return "start the application by hand in the image (php artisan list) and see what it waits for"
}
