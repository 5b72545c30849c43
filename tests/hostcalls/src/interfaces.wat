;; What the guests import. Types of one interface that another one uses are taken from the first, as toolchains do.

(import "toolbay:plugin/host@0.1.0" (instance $host
  (type $level' (enum "debug" "info" "notice" "warning" "error" "critical" "alert" "emergency"))
  (export "level" (type $level (eq $level')))
  (export "log" (func (param "level" $level) (param "message" string)))
  (export "progress" (func (param "progress" f64) (param "total" (option f64)) (param "message" (option string))))))
(alias export $host "log" (func $log))
(alias export $host "progress" (func $progress))

(import "wasi:io/error@0.2.0" (instance $errors
  (export "error" (type $error (sub resource)))
  (export "[method]error.to-debug-string" (func (param "self" (borrow $error)) (result string)))))
(alias export $errors "error" (type $error))

(import "wasi:io/poll@0.2.0" (instance $polls
  (export "pollable" (type $pollable (sub resource)))
  (export "[method]pollable.block" (func (param "self" (borrow $pollable))))
  (export "[method]pollable.ready" (func (param "self" (borrow $pollable)) (result bool)))))
(alias export $polls "pollable" (type $pollable))
(alias export $polls "[method]pollable.block" (func $block))
(alias export $polls "[method]pollable.ready" (func $ready))

(import "wasi:io/streams@0.2.0" (instance $streams
  (export "input-stream" (type $in-stream (sub resource)))
  (export "output-stream" (type $out-stream (sub resource)))
  (type $failed' (variant (case "last-operation-failed" (own $error)) (case "closed")))
  (export "stream-error" (type $failed (eq $failed')))
  (export "[method]input-stream.read"
    (func (param "self" (borrow $in-stream)) (param "len" u64) (result (result (list u8) (error $failed)))))
  (export "[method]input-stream.blocking-read"
    (func (param "self" (borrow $in-stream)) (param "len" u64) (result (result (list u8) (error $failed)))))
  (export "[method]input-stream.blocking-skip"
    (func (param "self" (borrow $in-stream)) (param "len" u64) (result (result u64 (error $failed)))))
  (export "[method]input-stream.subscribe" (func (param "self" (borrow $in-stream)) (result (own $pollable))))
  (export "[method]output-stream.check-write"
    (func (param "self" (borrow $out-stream)) (result (result u64 (error $failed)))))
  (export "[method]output-stream.write"
    (func (param "self" (borrow $out-stream)) (param "contents" (list u8)) (result (result (error $failed)))))
  (export "[method]output-stream.blocking-write-and-flush"
    (func (param "self" (borrow $out-stream)) (param "contents" (list u8)) (result (result (error $failed)))))
  (export "[method]output-stream.blocking-flush"
    (func (param "self" (borrow $out-stream)) (result (result (error $failed)))))
  (export "[method]output-stream.write-zeroes"
    (func (param "self" (borrow $out-stream)) (param "len" u64) (result (result (error $failed)))))
  (export "[method]output-stream.blocking-splice"
    (func (param "self" (borrow $out-stream)) (param "src" (borrow $in-stream)) (param "len" u64)
      (result (result u64 (error $failed)))))
  (export "[method]output-stream.subscribe" (func (param "self" (borrow $out-stream)) (result (own $pollable))))))
(alias export $streams "input-stream" (type $in-stream))
(alias export $streams "output-stream" (type $out-stream))
(alias export $streams "stream-error" (type $failed))
(alias export $streams "[method]input-stream.read" (func $read-stream))
(alias export $streams "[method]input-stream.blocking-read" (func $blocking-read))
(alias export $streams "[method]input-stream.blocking-skip" (func $blocking-skip))
(alias export $streams "[method]input-stream.subscribe" (func $subscribe-input))
(alias export $streams "[method]output-stream.check-write" (func $check-write))
(alias export $streams "[method]output-stream.write" (func $write-stream))
(alias export $streams "[method]output-stream.blocking-write-and-flush" (func $blocking-write))
(alias export $streams "[method]output-stream.blocking-flush" (func $blocking-flush))
(alias export $streams "[method]output-stream.write-zeroes" (func $write-zeroes))
(alias export $streams "[method]output-stream.blocking-splice" (func $splice))
(alias export $streams "[method]output-stream.subscribe" (func $subscribe-output))

(import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock
  (export "now" (func (result u64)))
  (export "subscribe-duration" (func (param "when" u64) (result (own $pollable))))))
(alias export $clock "now" (func $now))
(alias export $clock "subscribe-duration" (func $subscribe-duration))

(import "wasi:random/random@0.2.0" (instance $random
  (export "get-random-bytes" (func (param "len" u64) (result (list u8))))))
(alias export $random "get-random-bytes" (func $random-bytes))

(import "wasi:random/insecure@0.2.0" (instance $insecure
  (export "get-insecure-random-bytes" (func (param "len" u64) (result (list u8))))))
(alias export $insecure "get-insecure-random-bytes" (func $insecure-bytes))

(import "wasi:cli/environment@0.2.0" (instance $environment
  (export "get-environment" (func (result (list (tuple string string)))))))
(alias export $environment "get-environment" (func $get-environment))

(import "wasi:cli/stdin@0.2.0" (instance $in (export "get-stdin" (func (result (own $in-stream))))))
(import "wasi:cli/stdout@0.2.0" (instance $out (export "get-stdout" (func (result (own $out-stream))))))
(import "wasi:cli/stderr@0.2.0" (instance $err (export "get-stderr" (func (result (own $out-stream))))))
(alias export $in "get-stdin" (func $get-stdin))
(alias export $out "get-stdout" (func $get-stdout))
(alias export $err "get-stderr" (func $get-stderr))

(import "wasi:filesystem/types@0.2.0" (instance $files
  (export "descriptor" (type $descriptor (sub resource)))
  (export "directory-entry-stream" (type $entries (sub resource)))
  (type $path' (flags "symlink-follow"))
  (export "path-flags" (type $path (eq $path')))
  (type $how' (flags "create" "directory" "exclusive" "truncate"))
  (export "open-flags" (type $how (eq $how')))
  (type $mode' (flags "read" "write" "file-integrity-sync" "data-integrity-sync" "requested-write-sync"
    "mutate-directory"))
  (export "descriptor-flags" (type $mode (eq $mode')))
  (type $kind' (enum "unknown" "block-device" "character-device" "directory" "fifo" "symbolic-link" "regular-file"
    "socket"))
  (export "descriptor-type" (type $kind (eq $kind')))
  (type $entry' (record (field "type" $kind) (field "name" string)))
  (export "directory-entry" (type $entry (eq $entry')))
  (type $hash' (record (field "lower" u64) (field "upper" u64)))
  (export "metadata-hash-value" (type $hash (eq $hash')))
  (type $wrong' (enum "access" "would-block" "already" "bad-descriptor" "busy" "deadlock" "quota" "exist"
    "file-too-large" "illegal-byte-sequence" "in-progress" "interrupted" "invalid" "io" "is-directory" "loop"
    "too-many-links" "message-size" "name-too-long" "no-device" "no-entry" "no-lock" "insufficient-memory"
    "insufficient-space" "not-directory" "not-empty" "not-recoverable" "unsupported" "no-tty" "no-such-device"
    "overflow" "not-permitted" "pipe" "read-only" "invalid-seek" "text-file-busy" "cross-device"))
  (export "error-code" (type $wrong (eq $wrong')))
  (export "[method]descriptor.open-at" (func (param "self" (borrow $descriptor)) (param "path-flags" $path)
    (param "path" string) (param "open-flags" $how) (param "flags" $mode)
    (result (result (own $descriptor) (error $wrong)))))
  (export "[method]descriptor.read-via-stream" (func (param "self" (borrow $descriptor)) (param "offset" u64)
    (result (result (own $in-stream) (error $wrong)))))
  (export "[method]descriptor.write-via-stream" (func (param "self" (borrow $descriptor)) (param "offset" u64)
    (result (result (own $out-stream) (error $wrong)))))
  (export "[method]descriptor.append-via-stream" (func (param "self" (borrow $descriptor))
    (result (result (own $out-stream) (error $wrong)))))
  (export "[method]descriptor.read" (func (param "self" (borrow $descriptor)) (param "length" u64) (param "offset" u64)
    (result (result (tuple (list u8) bool) (error $wrong)))))
  (export "[method]descriptor.write" (func (param "self" (borrow $descriptor)) (param "buffer" (list u8))
    (param "offset" u64) (result (result u64 (error $wrong)))))
  (export "[method]descriptor.set-size" (func (param "self" (borrow $descriptor)) (param "size" u64)
    (result (result (error $wrong)))))
  (export "[method]descriptor.sync" (func (param "self" (borrow $descriptor)) (result (result (error $wrong)))))
  (export "[method]descriptor.metadata-hash" (func (param "self" (borrow $descriptor))
    (result (result $hash (error $wrong)))))
  (export "[method]descriptor.read-directory" (func (param "self" (borrow $descriptor))
    (result (result (own $entries) (error $wrong)))))
  (export "[method]directory-entry-stream.read-directory-entry" (func (param "self" (borrow $entries))
    (result (result (option $entry) (error $wrong)))))
  (export "[method]descriptor.create-directory-at" (func (param "self" (borrow $descriptor)) (param "path" string)
    (result (result (error $wrong)))))
  (export "[method]descriptor.remove-directory-at" (func (param "self" (borrow $descriptor)) (param "path" string)
    (result (result (error $wrong)))))
  (export "[method]descriptor.unlink-file-at" (func (param "self" (borrow $descriptor)) (param "path" string)
    (result (result (error $wrong)))))
  (export "[method]descriptor.readlink-at" (func (param "self" (borrow $descriptor)) (param "path" string)
    (result (result string (error $wrong)))))
  (export "[method]descriptor.symlink-at" (func (param "self" (borrow $descriptor)) (param "old-path" string)
    (param "new-path" string) (result (result (error $wrong)))))
  (export "[method]descriptor.rename-at" (func (param "self" (borrow $descriptor)) (param "old-path" string)
    (param "new-descriptor" (borrow $descriptor)) (param "new-path" string) (result (result (error $wrong)))))))
(alias export $files "descriptor" (type $descriptor))
(alias export $files "directory-entry-stream" (type $entries))
(alias export $files "[method]descriptor.open-at" (func $open-at))
(alias export $files "[method]descriptor.read-via-stream" (func $read-via-stream))
(alias export $files "[method]descriptor.write-via-stream" (func $write-via-stream))
(alias export $files "[method]descriptor.append-via-stream" (func $append-via-stream))
(alias export $files "[method]descriptor.read" (func $read-file))
(alias export $files "[method]descriptor.write" (func $write-file))
(alias export $files "[method]descriptor.set-size" (func $set-size))
(alias export $files "[method]descriptor.sync" (func $sync))
(alias export $files "[method]descriptor.metadata-hash" (func $metadata-hash))
(alias export $files "[method]descriptor.read-directory" (func $read-directory))
(alias export $files "[method]directory-entry-stream.read-directory-entry" (func $read-entry))
(alias export $files "[method]descriptor.create-directory-at" (func $create-directory))
(alias export $files "[method]descriptor.remove-directory-at" (func $remove-directory))
(alias export $files "[method]descriptor.unlink-file-at" (func $unlink))
(alias export $files "[method]descriptor.readlink-at" (func $readlink))
(alias export $files "[method]descriptor.symlink-at" (func $symlink))
(alias export $files "[method]descriptor.rename-at" (func $rename))

(import "wasi:filesystem/preopens@0.2.0" (instance $preopens
  (export "descriptor" (type $folder (eq $descriptor)))
  (export "get-directories" (func (result (list (tuple (own $folder) string)))))))
(alias export $preopens "get-directories" (func $get-directories))

(import "wasi:http/types@0.2.0" (instance $http
  (export "fields" (type $fields (sub resource)))
  (export "outgoing-request" (type $request (sub resource)))
  (export "outgoing-body" (type $body (sub resource)))
  (type $header' (variant (case "invalid-syntax") (case "forbidden") (case "immutable")))
  (export "header-error" (type $header (eq $header')))
  (export "[constructor]fields" (func (result (own $fields))))
  (export "[method]fields.append" (func (param "self" (borrow $fields)) (param "name" string) (param "value" (list u8))
    (result (result (error $header)))))
  (export "[method]fields.clone" (func (param "self" (borrow $fields)) (result (own $fields))))
  (export "[constructor]outgoing-request" (func (param "headers" (own $fields)) (result (own $request))))
  (export "[method]outgoing-request.set-authority"
    (func (param "self" (borrow $request)) (param "authority" (option string)) (result (result))))
  (export "[method]outgoing-request.headers" (func (param "self" (borrow $request)) (result (own $fields))))
  (export "[method]outgoing-request.body" (func (param "self" (borrow $request)) (result (result (own $body)))))
  (export "[method]outgoing-body.write" (func (param "self" (borrow $body)) (result (result (own $out-stream)))))))
(alias export $http "fields" (type $fields))
(alias export $http "outgoing-request" (type $request))
(alias export $http "outgoing-body" (type $body))
(alias export $http "[constructor]fields" (func $new-fields))
(alias export $http "[method]fields.append" (func $append-field))
(alias export $http "[method]fields.clone" (func $clone-fields))
(alias export $http "[constructor]outgoing-request" (func $new-request))
(alias export $http "[method]outgoing-request.set-authority" (func $set-authority))
(alias export $http "[method]outgoing-request.headers" (func $headers))
(alias export $http "[method]outgoing-request.body" (func $request-body))
(alias export $http "[method]outgoing-body.write" (func $write-body))
