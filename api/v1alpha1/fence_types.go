// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// FenceMode says what makes a second run of a job harmless.
// +kubebuilder:validation:Enum=None;Table;Proxy
type FenceMode string

// The fence modes.
const (
	FenceModeNone  FenceMode = "None"
	FenceModeTable FenceMode = "Table"
	FenceModeProxy FenceMode = "Proxy"
)

// Fence says what makes a second run of a job harmless.
type Fence struct {
	// Mode is what guards an external effect. None: at most the provider's own
	// idempotency key. Table: the application keeps a fence table of its own,
	// see table. Proxy: a sidecar on loopback calls the providers, each
	// operation at most once; it needs store, providers and
	// timeouts.httpSeconds. Default None.
	// +optional
	// +kubebuilder:default=None
	Mode FenceMode `json:"mode,omitempty"`

	// ProviderKeyTTLSeconds is how long the provider remembers an idempotency
	// key, in seconds; above the retry window of retries and retryAfterSeconds,
	// or the last run makes the effect a second time. Modes None and Table; with
	// Proxy each provider has its own. Unset: not judged.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	ProviderKeyTTLSeconds *int32 `json:"providerKeyTTLSeconds,omitempty"`

	// Table is the fence's table. Mode Table: the application's own, without
	// default; Proxy: the sidecar's, of which only the name is used.
	// +optional
	Table *FenceTable `json:"table,omitempty"`

	// Store is the database of the sidecar's table, one for the whole
	// application. Required with Proxy.
	// +optional
	Store *FenceStore `json:"store,omitempty"`

	// Providers are the APIs that the sidecar calls. The application calls
	// $QUEUEWORKER_FENCE_URL/<name>/<path> instead of <url>/<path>. Required with
	// mode Proxy, unless there are claims.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Providers []FenceProvider `json:"providers,omitempty"`

	// Claims are effects that are no HTTP call: the application claims a key from
	// the sidecar, does the work, and says how it ended. Mode Proxy only. Default
	// none.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Claims []FenceClaims `json:"claims,omitempty"`

	// Retention is how long the sidecar remembers what is done; mode Proxy only.
	// Each field has a default of its own.
	// +optional
	Retention FenceRetention `json:"retention,omitempty"`
}

// FenceTable is a table and its unique column.
type FenceTable struct {
	// Name is the table, or schema.table; with Proxy in lower case, each at most
	// 48 characters. Default with Proxy: queueworker_fence.
	// +optional
	// +kubebuilder:validation:MaxLength=127
	// +kubebuilder:validation:Pattern=`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?$`
	Name string `json:"name,omitempty"`

	// KeyColumn is the column with the unique index, for mode Table. Default
	// idempotency_key.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z_][A-Za-z0-9_]*$`
	KeyColumn string `json:"keyColumn,omitempty"`
}

// FenceStoreType is the kind of database.
// +kubebuilder:validation:Enum=PostgreSQL;MySQL
type FenceStoreType string

// The databases.
const (
	FenceStorePostgreSQL FenceStoreType = "PostgreSQL"
	FenceStoreMySQL      FenceStoreType = "MySQL"
)

// FenceSchema says who makes the sidecar's table.
// +kubebuilder:validation:Enum=Managed;Existing
type FenceSchema string

// Who makes the table.
const (
	FenceSchemaManaged  FenceSchema = "Managed"
	FenceSchemaExisting FenceSchema = "Existing"
)

// FenceStore is the database of the sidecar's table.
type FenceStore struct {
	// Type is PostgreSQL, or MySQL, also for MariaDB; it decides how secretRef is
	// read. Required.
	// +required
	Type FenceStoreType `json:"type"`

	// SecretRef is the Secret with the connection string. Required. It is
	// mounted into the sidecar only, and the operator never reads it.
	// +required
	SecretRef FenceSecretRef `json:"secretRef"`

	// Schema is who makes the table. Managed: the sidecar, which also migrates
	// it. Existing: you; the sidecar verifies it. Default Managed.
	// +optional
	Schema FenceSchema `json:"schema,omitempty"`
}

// FenceSecretRef names an entry of a Secret of the same namespace.
type FenceSecretRef struct {
	// Name is that of the Secret whose entry key is read. Required.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Key is the entry of the Secret of that name. Default dsn.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key,omitempty"`
}

// FenceProvider is an API and what it promises.
type FenceProvider struct {
	// Name is the first part of the path that the application calls. Required.
	// +required
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z]([a-z0-9-]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self != 'v1'",message="v1 is the sidecar's own path; choose another name"
	Name string `json:"name"`

	// URL is where the rest of the path goes. Required.
	// +required
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?$`
	URL string `json:"url"`

	// Key is a CEL expression over method, path, headers and body that makes the
	// key where the application sends no Idempotency-Key, such as
	// string(body.order_id) + "/charge". It must come from the business
	// operation. Unset: a request without the header is refused.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Key string `json:"key,omitempty"`

	// KeyHeader is the header in which this provider expects the key. Default
	// Idempotency-Key with keyTTLSeconds, else the key is not sent.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9-]+$`
	KeyHeader string `json:"keyHeader,omitempty"`

	// TimeoutSeconds is how long a reply is waited for, in seconds; at most
	// timeouts.httpSeconds - 3, which is the default.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`

	// MaxInFlightSeconds is how long after its start a request may still act at
	// the provider, in seconds: gateways, its own queue and a frozen process
	// included. At least timeoutSeconds + 30. Too short is the one way to a
	// second effect. Default 300.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	MaxInFlightSeconds *int32 `json:"maxInFlightSeconds,omitempty"`

	// KeyTTLSeconds is how long the provider remembers a key, in seconds; above
	// maxInFlightSeconds + 1, best above retryAfterSeconds too. Unset: it
	// ignores keys.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	KeyTTLSeconds *int32 `json:"keyTTLSeconds,omitempty"`

	// StoresErrors says that a repeated key is answered by the first reply even
	// where that was an error. Default false.
	// +optional
	StoresErrors bool `json:"storesErrors,omitempty"`

	// ActsOn5xx says that an answer of 5xx may follow an effect. With it and
	// without storesErrors, keys do not protect and are not relied on. Default
	// true.
	// +optional
	ActsOn5xx *bool `json:"actsOn5xx,omitempty"`

	// ResendLimit is how often one key is sent again before a person is asked.
	// Default 3.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	ResendLimit *int32 `json:"resendLimit,omitempty"`

	// ProviderID is CEL over status, headers and body that finds, in a reply of
	// success, the provider's own id. Default none.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	ProviderID string `json:"providerID,omitempty"`

	// Lookup is how the provider is asked about a key. Unset: it cannot be.
	// +optional
	Lookup *FenceLookup `json:"lookup,omitempty"`

	// LookupLagSeconds is the longest time from an effect to a lookup that shows
	// it, in seconds. Unset: a lookup that finds nothing proves nothing.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	LookupLagSeconds *int32 `json:"lookupLagSeconds,omitempty"`

	// DidNotAct are the statuses with which the provider promises that nothing
	// happened, of 401, 403, 407, 429 and 503. Default none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:validation:items:Enum=401;403;407;429;503
	DidNotAct []int32 `json:"didNotAct,omitempty"`
}

// FenceLookup is a GET and what its reply means, each expression CEL over
// status, headers, body, key and sentKey. A reply for which not exactly one of
// them holds tells nothing.
type FenceLookup struct {
	// Path goes behind url. It holds {key}, the key as the application named it,
	// or {sentKey}, what keyHeader carried. Required.
	// +required
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^/[^#\\\s]*$`
	Path string `json:"path"`

	// Headers are sent with it, such as Authorization. Default none.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=4
	Headers []FenceLookupHeader `json:"headers,omitempty"`

	// Succeeded: the effect is there. Required.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Succeeded string `json:"succeeded"`

	// Processing: the original is still at work. Default never.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Processing string `json:"processing,omitempty"`

	// Absent: there is nothing; it counts with lookupLagSeconds only. Default
	// never.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Absent string `json:"absent,omitempty"`

	// Refused: a final failure without an effect. Default never.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Refused string `json:"refused,omitempty"`

	// ProviderID gives the provider's own id for the effect. Default none.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	ProviderID string `json:"providerID,omitempty"`

	// Result gives the body that later copies of the call are told. Default
	// none.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Result string `json:"result,omitempty"`
}

// FenceLookupHeader is a header with its value, or the Secret that holds it.
// +kubebuilder:validation:ExactlyOneOf=value;secretRef
type FenceLookupHeader struct {
	// Name of the header. Required.
	// +required
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9-]+$`
	Name string `json:"name"`

	// Value is sent as it is.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value,omitempty"`

	// SecretRef is the Secret with the value; the operator never reads it.
	// +optional
	SecretRef *FenceSecretRef `json:"secretRef,omitempty"`
}

// FenceClaims is a namespace of keys for effects that are no HTTP call.
type FenceClaims struct {
	// Name is the scope that the application names; no provider has it, too.
	// Required.
	// +required
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z]([a-z0-9-]*[a-z0-9])?$`
	Name string `json:"name"`

	// DoWithinSeconds is how long the holder of a key may work, in seconds.
	// Default 60.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	DoWithinSeconds *int32 `json:"doWithinSeconds,omitempty"`

	// CanCheck says that the application can find out what a holder that vanished
	// has done. Default false: such a key waits for a person.
	// +optional
	CanCheck bool `json:"canCheck,omitempty"`
}

// FenceRetention is how long the sidecar remembers.
type FenceRetention struct {
	// DoneSeconds is how long a settled key is kept, in seconds; at least the
	// retry window + jobSeconds + httpSeconds + failedJobsSeconds, or a late
	// copy finds a free key. Default 2592000.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	DoneSeconds *int32 `json:"doneSeconds,omitempty"`

	// FailedJobsSeconds is how old a failed job may be when somebody retries it,
	// in seconds. Default 604800.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	FailedJobsSeconds *int32 `json:"failedJobsSeconds,omitempty"`
}
