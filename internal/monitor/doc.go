// SPDX-License-Identifier: Apache-2.0

// Package monitor knows what a queue and its workers look like from outside,
// and tells six states apart. It is pure: standard library and the heart only,
// no clock, no client. Whoever asks the queue hands in one [Snapshot] per
// interval and the number of workers; [Judgement.Next] says what is true now.
//
//	state    work waits   workers   what else
//	Empty    no           -         nobody holds a job either
//	Busy     no           -         somebody holds a job
//	Busy     yes          alive     something moved within StuckAfter
//	Stuck    yes          alive     nothing moved for StuckAfter
//	Stopped  yes          none
//	Paused   -            -         queue:pause on every queue, maintenance mode, Horizon paused,
//	                                or scaled to 0 replicas
//	Unknown  ?            ?         the backend could not be asked
//
// Work waits when a queue that is not paused has jobs that could run now: ready,
// due but not moved, or held past their time. A queue is served by workers that
// look at all queues, so one that moves speaks for the others. Something moved
// when the job at the head is another one, when the set of held jobs is another
// one, or when there are fewer jobs; new jobs alone are no movement.
//
// The way into a state and the way out of it are damped:
//
//	into Unknown and Paused       at the first look
//	out of Unknown and Paused     at the first look, but never into Stopped
//	into Stuck                    at the look that completes StuckAfter; the time counts from the
//	                              first of the looks between which nothing moved, and begins anew
//	                              when workers come back, at the end of a pause, and when the
//	                              backend answers again
//	out of Stuck into Busy        at the second movement, since a job that is only handed out
//	                              again moves once
//	into Stopped                  at the second look in a row that shows it
//	everything else               at the second look in a row that shows something else than what
//	                              is believed
package monitor
