//! Components that call WASI, written by hand.

use std::fmt::Write as _;

use crate::support::TinyComponent;

/// Returns a component whose calls run `body`, which may call the functions in `functions`: the
/// name of a core function that `interfaces` lowers, and its core type.
pub(crate) fn calls(interfaces: &str, functions: &[(&str, &str)], body: &str) -> TinyComponent {
    plain(interfaces, functions, body).before_call("(call $run)")
}

/// Like [`calls`], but `body` runs when the component lists its tools.
pub(super) fn lists(interfaces: &str, functions: &[(&str, &str)], body: &str) -> TinyComponent {
    plain(interfaces, functions, body).before_list("(call $run)")
}

/// Returns a component that has the body in a separate module, which imports the functions that it
/// calls.
fn plain(interfaces: &str, functions: &[(&str, &str)], body: &str) -> TinyComponent {
    let mut imported = String::new();
    let mut given = String::new();
    for (name, ty) in functions {
        let _ = write!(imported, "(import \"host\" \"{name}\" (func ${name} {ty}))");
        let _ = write!(given, "(export \"{name}\" (func ${name}))");
    }
    let imports = format!(
        r#"{interfaces}
        (core module $with-host (import "libc" "memory" (memory 0)) {imported} (func (export "run") {body}))
        (core instance $with-host (instantiate $with-host
          (with "libc" (instance $libc)) (with "host" (instance {given}))))
        (alias core export $with-host "run" (core func $import))"#
    );
    TinyComponent::new(&["a"])
        .with_imports(&imports)
        .with_core_items(r#"(import "host" "import" (func $run))"#)
}

/// `wasi:clocks/monotonic-clock`: `$now`.
pub(super) const NOW: &str = r#"
    (import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock (export "now" (func (result u64)))))
    (alias export $clock "now" (func $now))
    (core func $now (canon lower (func $now)))"#;

/// `wasi:random/random`: `$number`, and `$bytes` of any length.
pub(super) const RANDOM: &str = r#"
    (import "wasi:random/random@0.2.0" (instance $random
      (export "get-random-u64" (func (result u64)))
      (export "get-random-bytes" (func (param "len" u64) (result (list u8))))))
    (alias export $random "get-random-u64" (func $number))
    (alias export $random "get-random-bytes" (func $bytes))
    (core func $number (canon lower (func $number)))
    (core func $bytes (canon lower (func $bytes) (memory $memory) (realloc $realloc)))"#;

/// `wasi:io/poll` and a clock: `$subscribe` to a number of nanoseconds, `$block`, `$poll`, `$drop`.
pub(super) const POLL: &str = r#"
    (import "wasi:io/poll@0.2.0" (instance $polls
      (export "pollable" (type $pollable (sub resource)))
      (export "[method]pollable.block" (func (param "self" (borrow $pollable))))
      (export "poll" (func (param "in" (list (borrow $pollable))) (result (list u32))))))
    (alias export $polls "pollable" (type $pollable))
    (alias export $polls "[method]pollable.block" (func $block))
    (alias export $polls "poll" (func $poll))
    (import "wasi:clocks/monotonic-clock@0.2.0" (instance $timer
      (export "subscribe-duration" (func (param "when" u64) (result (own $pollable))))))
    (alias export $timer "subscribe-duration" (func $subscribe))
    (core func $subscribe (canon lower (func $subscribe)))
    (core func $block (canon lower (func $block)))
    (core func $poll (canon lower (func $poll) (memory $memory) (realloc $realloc)))
    (core func $drop (canon resource.drop $pollable))"#;

/// `wasi:cli/stdout`: `$stdout`, and for this stream `$check`, which returns how many bytes may be
/// written, and `$write`.
pub(super) const STDOUT: &str = r#"
    (import "wasi:io/error@0.2.0" (instance $errors (export "error" (type $error (sub resource)))))
    (alias export $errors "error" (type $error))
    (import "wasi:io/streams@0.2.0" (instance $streams
      (export "output-stream" (type $stream (sub resource)))
      (type $failed' (variant (case "last-operation-failed" (own $error)) (case "closed")))
      (export "stream-error" (type $failed (eq $failed')))
      (export "[method]output-stream.check-write"
        (func (param "self" (borrow $stream)) (result (result u64 (error $failed)))))
      (export "[method]output-stream.write"
        (func (param "self" (borrow $stream)) (param "contents" (list u8)) (result (result (error $failed)))))))
    (alias export $streams "output-stream" (type $stream))
    (alias export $streams "[method]output-stream.check-write" (func $check))
    (alias export $streams "[method]output-stream.write" (func $write))
    (import "wasi:cli/stdout@0.2.0" (instance $standard
      (export "get-stdout" (func (result (own $stream))))))
    (alias export $standard "get-stdout" (func $stdout))
    (core func $stdout (canon lower (func $stdout)))
    (core func $check (canon lower (func $check) (memory $memory)))
    (core func $write (canon lower (func $write) (memory $memory)))"#;

/// `wasi:filesystem`: `$mounts`, and `$open` for a file in one of them.
pub(super) const FILES: &str = r#"
    (import "wasi:filesystem/types@0.2.0" (instance $files
      (export "descriptor" (type $descriptor (sub resource)))
      (type $path' (flags "symlink-follow"))
      (export "path-flags" (type $path (eq $path')))
      (type $how' (flags "create" "directory" "exclusive" "truncate"))
      (export "open-flags" (type $how (eq $how')))
      (type $mode' (flags "read" "write" "file-integrity-sync" "data-integrity-sync" "requested-write-sync"
        "mutate-directory"))
      (export "descriptor-flags" (type $mode (eq $mode')))
      (type $wrong' (enum "access" "would-block" "already" "bad-descriptor" "busy" "deadlock" "quota" "exist"
        "file-too-large" "illegal-byte-sequence" "in-progress" "interrupted" "invalid" "io" "is-directory" "loop"
        "too-many-links" "message-size" "name-too-long" "no-device" "no-entry" "no-lock" "insufficient-memory"
        "insufficient-space" "not-directory" "not-empty" "not-recoverable" "unsupported" "no-tty" "no-such-device"
        "overflow" "not-permitted" "pipe" "read-only" "invalid-seek" "text-file-busy" "cross-device"))
      (export "error-code" (type $wrong (eq $wrong')))
      (export "[method]descriptor.open-at" (func (param "self" (borrow $descriptor)) (param "path-flags" $path)
        (param "path" string) (param "open-flags" $how) (param "flags" $mode)
        (result (result (own $descriptor) (error $wrong)))))))
    (alias export $files "descriptor" (type $descriptor))
    (alias export $files "[method]descriptor.open-at" (func $open))
    (import "wasi:filesystem/preopens@0.2.0" (instance $preopens
      (export "descriptor" (type $folder (eq $descriptor)))
      (export "get-directories" (func (result (list (tuple (own $folder) string)))))))
    (alias export $preopens "get-directories" (func $mounts))
    (core func $open (canon lower (func $open) (memory $memory)))
    (core func $mounts (canon lower (func $mounts) (memory $memory) (realloc $realloc)))"#;

/// `toolbay:plugin/host`: `$progress` without a total or a message.
pub(super) const PROGRESS: &str = r#"
    (import "toolbay:plugin/host@0.1.0" (instance $host
      (export "progress" (func (param "progress" f64) (param "total" (option f64)) (param "message" (option string))))))
    (alias export $host "progress" (func $progress))
    (core func $progress (canon lower (func $progress) (memory $memory)))"#;

/// `wasi:sockets/ip-name-lookup`: `$network`, and `$resolve` for a name in it.
pub(super) const NAMES: &str = r#"
    (import "wasi:sockets/network@0.2.0" (instance $networks
      (export "network" (type $network (sub resource)))
      (type $code' (enum "unknown" "access-denied" "not-supported" "invalid-argument" "out-of-memory" "timeout"
        "concurrency-conflict" "not-in-progress" "would-block" "invalid-state" "new-socket-limit"
        "address-not-bindable" "address-in-use" "remote-unreachable" "connection-refused" "connection-reset"
        "connection-aborted" "datagram-too-large" "name-unresolvable" "temporary-resolver-failure"
        "permanent-resolver-failure"))
      (export "error-code" (type (eq $code')))))
    (alias export $networks "network" (type $network))
    (alias export $networks "error-code" (type $code))
    (import "wasi:sockets/instance-network@0.2.0" (instance $own
      (export "instance-network" (func (result (own $network))))))
    (alias export $own "instance-network" (func $network))
    (import "wasi:sockets/ip-name-lookup@0.2.0" (instance $lookup
      (export "error-code" (type $code-here (eq $code)))
      (export "resolve-address-stream" (type $addresses (sub resource)))
      (export "resolve-addresses" (func (param "network" (borrow $network)) (param "name" string)
        (result (result (own $addresses) (error $code-here)))))))
    (alias export $lookup "resolve-addresses" (func $resolve))
    (core func $network (canon lower (func $network)))
    (core func $resolve (canon lower (func $resolve) (memory $memory)))"#;

/// `wasi:sockets/udp-create-socket`: `$socket` of an address family.
pub(super) const UDP: &str = r#"
    (import "wasi:sockets/network@0.2.0" (instance $networks
      (type $code' (enum "unknown" "access-denied" "not-supported" "invalid-argument" "out-of-memory" "timeout"
        "concurrency-conflict" "not-in-progress" "would-block" "invalid-state" "new-socket-limit"
        "address-not-bindable" "address-in-use" "remote-unreachable" "connection-refused" "connection-reset"
        "connection-aborted" "datagram-too-large" "name-unresolvable" "temporary-resolver-failure"
        "permanent-resolver-failure"))
      (export "error-code" (type (eq $code')))
      (type $family' (enum "ipv4" "ipv6"))
      (export "ip-address-family" (type (eq $family')))))
    (alias export $networks "error-code" (type $code))
    (alias export $networks "ip-address-family" (type $family))
    (import "wasi:sockets/udp@0.2.0" (instance $udps (export "udp-socket" (type (sub resource)))))
    (alias export $udps "udp-socket" (type $udp))
    (import "wasi:sockets/udp-create-socket@0.2.0" (instance $sockets
      (export "error-code" (type $code-here (eq $code)))
      (export "ip-address-family" (type $family-here (eq $family)))
      (export "udp-socket" (type $udp-here (eq $udp)))
      (export "create-udp-socket"
        (func (param "address-family" $family-here) (result (result (own $udp-here) (error $code-here)))))))
    (alias export $sockets "create-udp-socket" (func $socket))
    (core func $socket (canon lower (func $socket) (memory $memory)))"#;

/// `wasi:http/outgoing-handler`: `$fields`, `$request` with these fields, `$authority` and `$path`
/// of the request, and `$send`.
pub(super) const HTTP: &str = r#"
    (import "wasi:http/types@0.2.0" (instance $http
      (export "fields" (type $fields (sub resource)))
      (export "outgoing-request" (type $request (sub resource)))
      (export "request-options" (type $options (sub resource)))
      (export "future-incoming-response" (type $response (sub resource)))
      (type $dns' (record (field "rcode" (option string)) (field "info-code" (option u16))))
      (export "DNS-error-payload" (type $dns (eq $dns')))
      (type $alert' (record (field "alert-id" (option u8)) (field "alert-message" (option string))))
      (export "TLS-alert-received-payload" (type $alert (eq $alert')))
      (type $size' (record (field "field-name" (option string)) (field "field-size" (option u32))))
      (export "field-size-payload" (type $size (eq $size')))
      (type $code' (variant (case "DNS-timeout") (case "DNS-error" $dns) (case "destination-not-found")
        (case "destination-unavailable") (case "destination-IP-prohibited") (case "destination-IP-unroutable")
        (case "connection-refused") (case "connection-terminated") (case "connection-timeout")
        (case "connection-read-timeout") (case "connection-write-timeout") (case "connection-limit-reached")
        (case "TLS-protocol-error") (case "TLS-certificate-error") (case "TLS-alert-received" $alert)
        (case "HTTP-request-denied") (case "HTTP-request-length-required")
        (case "HTTP-request-body-size" (option u64)) (case "HTTP-request-method-invalid")
        (case "HTTP-request-URI-invalid") (case "HTTP-request-URI-too-long")
        (case "HTTP-request-header-section-size" (option u32)) (case "HTTP-request-header-size" (option $size))
        (case "HTTP-request-trailer-section-size" (option u32)) (case "HTTP-request-trailer-size" $size)
        (case "HTTP-response-incomplete") (case "HTTP-response-header-section-size" (option u32))
        (case "HTTP-response-header-size" $size) (case "HTTP-response-body-size" (option u64))
        (case "HTTP-response-trailer-section-size" (option u32)) (case "HTTP-response-trailer-size" $size)
        (case "HTTP-response-transfer-coding" (option string)) (case "HTTP-response-content-coding" (option string))
        (case "HTTP-response-timeout") (case "HTTP-upgrade-failed") (case "HTTP-protocol-error")
        (case "loop-detected") (case "configuration-error") (case "internal-error" (option string))))
      (export "error-code" (type $code (eq $code')))
      (export "[constructor]fields" (func (result (own $fields))))
      (export "[constructor]outgoing-request" (func (param "headers" (own $fields)) (result (own $request))))
      (export "[method]outgoing-request.set-authority"
        (func (param "self" (borrow $request)) (param "authority" (option string)) (result (result))))
      (export "[method]outgoing-request.set-path-with-query"
        (func (param "self" (borrow $request)) (param "path-with-query" (option string)) (result (result))))))
    (alias export $http "outgoing-request" (type $request))
    (alias export $http "request-options" (type $options))
    (alias export $http "future-incoming-response" (type $response))
    (alias export $http "error-code" (type $code))
    (alias export $http "[constructor]fields" (func $fields))
    (alias export $http "[constructor]outgoing-request" (func $request))
    (alias export $http "[method]outgoing-request.set-authority" (func $authority))
    (alias export $http "[method]outgoing-request.set-path-with-query" (func $path))
    (import "wasi:http/outgoing-handler@0.2.0" (instance $handler
      (export "error-code" (type $code-here (eq $code)))
      (export "handle" (func (param "request" (own $request)) (param "options" (option (own $options)))
        (result (result (own $response) (error $code-here)))))))
    (alias export $handler "handle" (func $send))
    (core func $fields (canon lower (func $fields)))
    (core func $request (canon lower (func $request)))
    (core func $authority (canon lower (func $authority) (memory $memory)))
    (core func $path (canon lower (func $path) (memory $memory)))
    (core func $send (canon lower (func $send) (memory $memory) (realloc $realloc)))"#;
