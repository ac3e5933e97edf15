// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"encoding/json"
	"fmt"

	"github.com/queueworker/operator/internal/timeoutchain"
)

// Facts are what the processes in the image said.
type Facts struct {
	// Light is the configuration as the application's files say it, and its job
	// classes.
	Light Reading
	// Booted is the configuration after the application's own start, and what
	// its servers said.
	Booted Reading
	// Uncached is the configuration as it would be without a cached one; nil
	// where none is cached.
	Uncached *Reading
	// UnseenEnv is what of the worker's environment was not known to whoever
	// asked, each with the reason. A pod knows all of it.
	UnseenEnv []string
}

// Reading is what one process said, and how it ended.
type Reading struct {
	App     *App
	Missing *Missing
	Classes []Class
	Broken  []Broken
	Servers Servers
	Ending  Ending

	// Loading is the class that was being loaded last, and Loaded how many there
	// were so far.
	Loading *Place
	Loaded  int
	// Asking is the server question that was asked last.
	Asking string
}

// Missing is a file of the application that is not there.
type Missing struct {
	File      string `json:"file"`
	Directory string `json:"directory"` // in which it was looked for
}

// App is the configuration.
type App struct {
	PHP struct {
		Version     string   `json:"version"`
		Pcntl       bool     `json:"pcntl"`
		Posix       bool     `json:"posix"`
		Missing     []string `json:"missing"`     // functions that are compiled out or disabled
		MemoryLimit int64    `json:"memoryLimit"` // bytes, -1 = none
		// MemoryLimitAtStart is what it was before the application set it.
		MemoryLimitAtStart int64 `json:"memoryLimitAtStart"`
	} `json:"php"`
	Laravel struct {
		Version      string `json:"version"`
		Environment  string `json:"environment"`
		Horizon      string `json:"horizon"`      // version, empty where it is not installed
		CachedConfig string `json:"cachedConfig"` // the file, empty where there is none
	} `json:"laravel"`
	Queue  Connection `json:"queue"`
	Failed struct {
		Driver string `json:"driver"` // as it is written, empty where there is none
		Store  string `json:"store"`  // what Laravel makes of it: null, database, database-uuids, dynamodb or file
		Table  string `json:"table"`
	} `json:"failed"`
	Cache struct {
		Store  string `json:"store"`
		Driver string `json:"driver"`
		Prefix string `json:"prefix"`
	} `json:"cache"`
	Redis          *Redis   `json:"redis"`   // of the queue; nil for other drivers
	Horizon        *Horizon `json:"horizon"` // nil where it is not configured
	UnwritableLogs []string `json:"unwritableLogs"`
}

// Connection is the queue connection.
type Connection struct {
	Connection  string   `json:"connection"`
	Connections []string `json:"connections"` // all that there are
	Exists      bool     `json:"exists"`
	Driver      string   `json:"driver"`
	Queue       string   `json:"queue"`
	RetryAfter  Setting  `json:"retryAfter"`
	BlockFor    Setting  `json:"blockFor"`
	AfterCommit bool     `json:"afterCommit"`
}

// Setting is a number of the configuration.
type Setting struct {
	Set   bool   `json:"set"`   // the key is there
	Value *int64 `json:"value"` // nil where there is no number
	Text  string `json:"text"`  // what stands there where it is no number
}

// String is the setting as a person would look for it.
func (s Setting) String() string {
	switch {
	case s.Value != nil:
		return fmt.Sprint(*s.Value)
	case s.Text != "":
		return fmt.Sprintf("%q", s.Text)
	case s.Set:
		return "null"
	default:
		return "missing"
	}
}

// Redis is how the queue's Redis is used.
type Redis struct {
	Connection      string `json:"connection"`
	Exists          bool   `json:"exists"`
	Cluster         bool   `json:"cluster"`
	Prefix          string `json:"prefix"`
	SharedWithCache bool   `json:"sharedWithCache"` // the default cache store has the same database
	MaybeShared     bool   `json:"maybeShared"`     // it has the same database number, on a server of another name
}

// Horizon is what Horizon would run.
type Horizon struct {
	Environment     string       `json:"environment"`
	Environments    []string     `json:"environments"` // the keys that are configured
	Chosen          string       `json:"chosen"`       // the key that Horizon takes, empty where none fits
	FastTermination bool         `json:"fastTermination"`
	Supervisors     []Supervisor `json:"supervisors"`
}

// Supervisor is one of Horizon's supervisors.
type Supervisor struct {
	Name         string   `json:"name"`
	Connection   string   `json:"connection"`
	Queues       []string `json:"queues"`
	Balance      string   `json:"balance"`
	Timeout      int64    `json:"timeout"`
	Tries        int64    `json:"tries"`
	Memory       int64    `json:"memory"`
	MinProcesses int64    `json:"minProcesses"`
	MaxProcesses int64    `json:"maxProcesses"`
}

// Class is a queued class of the application.
type Class struct {
	Name       string   `json:"name"`
	File       string   `json:"file"`
	Timeout    *Limit   `json:"timeout"`
	Tries      *Limit   `json:"tries"`
	Backoff    *Limit   `json:"backoff"`
	UniqueFor  *Limit   `json:"uniqueFor"`
	Queue      *Limit   `json:"queue"`
	Connection *Limit   `json:"connection"`
	Unique     bool     `json:"unique"`     // it implements ShouldBeUnique
	RetryUntil bool     `json:"retryUntil"` // it has one, by method or property
	Methods    []string `json:"methods"`    // limits that a method decides
	Assigned   []string `json:"assigned"`   // limits that the constructor sets
	Hidden     []string `json:"hidden"`     // limits in properties that are not public
}

// Limit is what a class says about itself.
type Limit struct {
	Numbers []int64 `json:"numbers"`
	Text    string  `json:"text"` // a name; of a number: what stands there and is none
	By      string  `json:"by"`   // "$timeout" or "#[Timeout]"
	In      string  `json:"in"`   // the class that says it: this one or a parent
	File    string  `json:"file"` // of that class
}

// Broken is a class that cannot be loaded.
type Broken struct {
	Name string `json:"name"`
	Failure
}

// Place is a class and its file.
type Place struct {
	Class string `json:"class"`
	File  string `json:"file"`
}

// Failure is an error of PHP or of the application: its first line and place.
type Failure struct {
	Class   string `json:"class"` // with the classes of what it was caused by
	Message string `json:"message"`
	File    string `json:"file"`
	Line    int    `json:"line"`
}

// String is the failure in one line.
func (f Failure) String() string {
	if f.File == "" {
		return f.Message
	}
	return fmt.Sprintf("%s (%s:%d)", f.Message, f.File, f.Line)
}

// Servers is what the servers said; nil where they were not asked, or did not
// answer.
type Servers struct {
	Redis      *RedisServer
	Cache      *CacheServer
	Jobs       *Table
	Failed     *Table
	Fence      *FenceTable
	SQS        *SQSQueue
	Unanswered map[string]Failure // by question: redis, cache, jobs, failed, fence, sqs
}

// RedisServer is what the queue's Redis is set to.
type RedisServer struct {
	Policy    string `json:"policy"`    // maxmemory-policy
	MaxMemory int64  `json:"maxmemory"` // bytes, 0 = no limit
	Cluster   bool   `json:"cluster"`
}

// CacheServer says whether the cache's Redis is the queue's.
type CacheServer struct {
	Same bool `json:"same"`
}

// Table says whether a table is there.
type Table struct {
	Exists     bool   `json:"exists"`
	Name       string `json:"name"`       // with the connection's prefix
	Connection string `json:"connection"` // of the database
}

// FenceTable says what of the fence's table is there.
type FenceTable struct {
	Exists bool   `json:"exists"`
	Name   string `json:"name"` // with the connection's prefix
	Column bool   `json:"column"`
	Unique bool   `json:"unique"` // by an index of the key column alone
}

// SQSQueue is what SQS says of the queue.
type SQSQueue struct {
	Visibility int64 `json:"visibility"`
}

// How is how a process ended.
type How string

// The ways in which a process ends.
const (
	Ended      How = "Ended"      // it said everything
	Failed     How = "Failed"     // an exception or a fatal error
	Exited     How = "Exited"     // the application's own code ended it
	TimedOut   How = "TimedOut"   // it was killed for taking too long
	Killed     How = "Killed"     // somebody else killed it
	OOMKilled  How = "OOMKilled"  // the kernel killed it for its memory
	TooMuch    How = "TooMuch"    // it said more than is read
	NotStarted How = "NotStarted" // there is no such program
	Unread     How = "Unread"     // what it said is not understood
)

// Ending is how a process ended, and the first line of why.
type Ending struct {
	How     How
	Failure Failure
}

// factsVersion is the version of the records that this package reads.
const factsVersion = 1

// Add takes one record of the process in. What is not understood is an error:
// our own scripts wrote it.
func (r *Reading) Add(line []byte) error {
	var head struct {
		V    int    `json:"v"`
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return fmt.Errorf("a record is not JSON: %w", err)
	}
	if head.V != factsVersion {
		return fmt.Errorf("a record has version %d, this program reads version %d", head.V, factsVersion)
	}
	read, known := r.readers()[head.Kind]
	if !known {
		return fmt.Errorf("a record is of the unknown kind %q", head.Kind)
	}
	if err := read(line); err != nil {
		return fmt.Errorf("a record of kind %s: %w", head.Kind, err)
	}
	return nil
}

func (r *Reading) readers() map[string]func([]byte) error {
	return map[string]func([]byte) error{
		"app":     func(l []byte) error { return into(l, &r.App) },
		"missing": func(l []byte) error { return into(l, &r.Missing) },
		"loading": func(l []byte) error { r.Loaded++; return into(l, &r.Loading) },
		"class":   func(l []byte) error { return appendTo(l, &r.Classes) },
		"broken":  func(l []byte) error { return appendTo(l, &r.Broken) },
		"asking":  r.asking,

		"server-redis":  func(l []byte) error { return into(l, &r.Servers.Redis) },
		"server-cache":  func(l []byte) error { return into(l, &r.Servers.Cache) },
		"server-jobs":   func(l []byte) error { return into(l, &r.Servers.Jobs) },
		"server-failed": func(l []byte) error { return into(l, &r.Servers.Failed) },
		"server-fence":  func(l []byte) error { return into(l, &r.Servers.Fence) },
		"server-sqs":    func(l []byte) error { return into(l, &r.Servers.SQS) },
		"unanswered":    r.unanswered,

		"failed": func(l []byte) error { return r.ends(l, Failed) },
		"exited": func(l []byte) error { return r.ends(l, Exited) },
		"end":    func(l []byte) error { return r.ends(l, Ended) },
	}
}

// record is a record with its head.
type record[T any] struct {
	V     int    `json:"v"`
	Kind  string `json:"kind"`
	Stage string `json:"stage"`
	Facts T      `json:"facts"`
}

func decode[T any](line []byte) (T, error) {
	var r record[T]
	err := timeoutchain.DecodeStrictly(line, &r)
	return r.Facts, err
}

func into[T any](line []byte, target **T) error {
	facts, err := decode[T](line)
	*target = &facts
	return err
}

func appendTo[T any](line []byte, list *[]T) error {
	facts, err := decode[T](line)
	*list = append(*list, facts)
	return err
}

func (r *Reading) asking(line []byte) error {
	question, err := decode[struct {
		What string `json:"what"`
	}](line)
	r.Asking = question.What
	return err
}

func (r *Reading) unanswered(line []byte) error {
	answer, err := decode[struct {
		What string `json:"what"`
		Failure
	}](line)
	r.Unanswered(answer.What, answer.Failure)
	return err
}

// Unanswered notes that a question to a server has no answer.
func (r *Reading) Unanswered(what string, why Failure) {
	if r.Servers.Unanswered == nil {
		r.Servers.Unanswered = map[string]Failure{}
	}
	r.Servers.Unanswered[what] = why
}

func (r *Reading) ends(line []byte, how How) error {
	failure, err := decode[Failure](line)
	r.Ending = Ending{How: how, Failure: failure}
	return err
}
