// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Condition types of a QueueWorker. Ready, Reconciling and Stalled follow the
// kstatus convention; Reconciling and Stalled are never both True.
const (
	// ConditionReady is True when the chain holds and enough workers are
	// available. False with a reason otherwise; it does not flip in a rolling
	// update.
	ConditionReady = "Ready"
	// ConditionReconciling is True while a rollout or the drain of older pods
	// is under way, or a newer generation is not yet applied.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True for what only a change can fix.
	ConditionStalled = "Stalled"
	// ConditionChainIntact is True when no rule finds an error in the spec.
	ConditionChainIntact = "ChainIntact"
	// ConditionDraining is True while any worker is being stopped.
	ConditionDraining = "Draining"
	// ConditionGraceHonored is True when every worker that is there has the
	// grace that its chain promises.
	ConditionGraceHonored = "GraceHonored"
	// ConditionPreflightPassed is True when the application in the image of the
	// newest template keeps the declaration, False when it contradicts it, and
	// Unknown while nobody could tell.
	ConditionPreflightPassed = "PreflightPassed"
	// ConditionFenceReady, there with fence.mode Proxy only, is True when the
	// sidecar of every worker serves, False when one does not, and Unknown while
	// there is none to ask.
	ConditionFenceReady = "FenceReady"
	// ConditionConsuming is True while the queue is empty or worked on, False
	// while work waits or the queue is paused, and Unknown while nobody can tell.
	// Its reason is the state that the monitor saw, one of States, or why there is
	// none. The monitor writes it; the operator does where there is no monitor, or
	// a silent one.
	ConditionConsuming = "Consuming"
)

// Reasons of the Ready condition. They are stable API.
const (
	// ReasonAvailable (True): enough workers are available.
	ReasonAvailable = "Available"
	// ReasonScaledToZero (True): no worker is wanted and none is running.
	ReasonScaledToZero = "ScaledToZero"
	// ReasonUnavailable (False): fewer workers are available than wanted.
	ReasonUnavailable = "Unavailable"
	// ReasonRecreating (False, Reconciling True): the old workers are drained
	// before the new ones start.
	ReasonRecreating = "Recreating"
	// ReasonProgressing (False): the first rollout is under way.
	ReasonProgressing = "Progressing"
)

// Reasons of the Reconciling condition. They are stable API.
const (
	// ReasonRollingOut (True): workers of the newest template are being started.
	ReasonRollingOut = "RollingOut"
	// ReasonDrainingOldPods (True): workers of an older template still finish
	// their job.
	ReasonDrainingOldPods = "DrainingOldPods"
	// ReasonApplying (True): the Deployment was written and its controller has
	// not looked at it yet.
	ReasonApplying = "Applying"
	// ReasonScaling (True): the number of workers is being changed.
	ReasonScaling = "Scaling"
	// ReasonSettled (False): nothing is under way.
	ReasonSettled = "Settled"
)

// Reasons of the Stalled condition, and of Ready while it is True. They are
// stable API.
const (
	// ReasonChainBroken (Stalled True, ChainIntact False): the spec breaks the
	// chain; the running Deployment's template is left as it is.
	ReasonChainBroken = "ChainBroken"
	// ReasonDeploymentRefused (Stalled True): the API server refuses the
	// Deployment; the message is its own text.
	ReasonDeploymentRefused = "DeploymentRefused"
	// ReasonForeignObject (Stalled True): an object with our name belongs to
	// somebody else and is left alone.
	ReasonForeignObject = "ForeignObject"
	// ReasonProgressDeadlineExceeded (Stalled True): new workers did not become
	// available in time.
	ReasonProgressDeadlineExceeded = "ProgressDeadlineExceeded"
	// ReasonImageUnavailable (Stalled True): the image cannot be pulled.
	ReasonImageUnavailable = "ImageUnavailable"
	// ReasonPreflightRefused (Stalled True, PreflightPassed False): the image
	// contradicts the declaration, so its workers do not start; older ones stay.
	ReasonPreflightRefused = "PreflightRefused"
	// ReasonNotStalled (Stalled False).
	ReasonNotStalled = "NotStalled"
)

// Reasons of the ChainIntact condition. They are stable API.
const (
	// ReasonEveryLinkHolds (True): no error and no warning.
	ReasonEveryLinkHolds = "EveryLinkHolds"
	// ReasonHoldsWithWarnings (True): no error; the message lists the warnings.
	ReasonHoldsWithWarnings = "HoldsWithWarnings"
)

// Reasons of the Draining condition. They are stable API.
const (
	// ReasonWorkersDraining (True): the message says how many workers are being
	// stopped and for how long they may take.
	ReasonWorkersDraining = "WorkersDraining"
	// ReasonDrainOverdue (True): a worker is still there although its grace is
	// over; the message says since when.
	ReasonDrainOverdue = "DrainOverdue"
	// ReasonNoneDraining (False).
	ReasonNoneDraining = "NoneDraining"
)

// Reasons of the GraceHonored condition. They are stable API.
const (
	// ReasonPromiseKept (True).
	ReasonPromiseKept = "PromiseKept"
	// ReasonAdmittedWithLess (False): the pods were admitted with a shorter
	// grace than the rendered one.
	ReasonAdmittedWithLess = "AdmittedWithLess"
	// ReasonMayBeCut (False): a worker is being stopped with less time than it
	// was promised.
	ReasonMayBeCut = "MayBeCut"
)

// Reasons of the PreflightPassed condition, beside PreflightRefused. They are
// stable API.
const (
	// ReasonPreflightPassed (True): nothing contradicts the declaration.
	ReasonPreflightPassed = "Passed"
	// ReasonPreflightWarned (False): the image contradicts the declaration, and
	// the policy is Warn: its workers started.
	ReasonPreflightWarned = "PreflightWarned"
	// ReasonPreflightUnfinished (Unknown): it did not come to an end, and is
	// tried again.
	ReasonPreflightUnfinished = "Unfinished"
	// ReasonPreflightPending (Unknown): it has not ended yet.
	ReasonPreflightPending = "Pending"
	// ReasonPreflightNotRun (Unknown): the workers were made without one.
	ReasonPreflightNotRun = "NotRun"
	// ReasonPreflightDisabled (Unknown): the policy is Disabled, or the runtime
	// is Generic.
	ReasonPreflightDisabled = "Disabled"
)

// Reasons of the FenceReady condition. They are stable API.
const (
	// ReasonFenceServing (True).
	ReasonFenceServing = "FenceServing"
	// ReasonFenceUnready (False): a sidecar that served does not any more; its
	// database does not answer, most likely.
	ReasonFenceUnready = "FenceUnready"
	// ReasonFenceFailed (False): a sidecar ended with an error; the message is
	// its own last words.
	ReasonFenceFailed = "FenceFailed"
	// ReasonFenceStarting (Unknown): no sidecar has served yet.
	ReasonFenceStarting = "FenceStarting"
	// ReasonNoFence (Unknown): no worker with a sidecar is there.
	ReasonNoFence = "NoFence"
)

// Reasons of the Consuming condition, beside the states. They are stable API.
const (
	// ReasonUnwatched (Unknown): monitoring is off, or the runtime is Generic.
	ReasonUnwatched = "Unwatched"
	// ReasonMonitorStarting (Unknown): the monitor has not looked yet.
	ReasonMonitorStarting = "MonitorStarting"
	// ReasonMonitorSilent (Unknown): the monitor has said nothing for long, or
	// there is none and cannot be.
	ReasonMonitorSilent = "MonitorSilent"
)
