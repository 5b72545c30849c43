  ;; What a generated plugin imports, lowered for its core module.
  (import "toolbay:plugin/host@0.1.0" (instance $host
    (type $level' (enum "debug" "info" "notice" "warning" "error" "critical" "alert" "emergency"))
    (export "level" (type $level (eq $level')))
    (export "log" (func (param "level" $level) (param "message" string)))
    (export "progress" (func (param "progress" f64) (param "total" (option f64)) (param "message" (option string))))
    (export "cancelled" (func (result bool)))
    (export "config" (func (param "key" string) (result (option string))))
    (export "config-all" (func (result (list (tuple string string)))))))
  (core func $log (canon lower (func $host "log") (memory $memory)))
  (core func $progress (canon lower (func $host "progress") (memory $memory)))
  (core func $cancelled (canon lower (func $host "cancelled")))
  (core func $config (canon lower (func $host "config") (memory $memory) (realloc $realloc)))
  (core func $config-all (canon lower (func $host "config-all") (memory $memory) (realloc $realloc)))

  (import "wasi:random/random@0.2.0" (instance $random
    (export "get-random-u64" (func (result u64)))
    (export "get-random-bytes" (func (param "len" u64) (result (list u8))))))
  (core func $number (canon lower (func $random "get-random-u64")))
  (core func $bytes (canon lower (func $random "get-random-bytes") (memory $memory) (realloc $realloc)))

  (import "wasi:cli/environment@0.2.0" (instance $environment
    (export "get-environment" (func (result (list (tuple string string)))))
    (export "get-arguments" (func (result (list string))))))
  (core func $variables (canon lower (func $environment "get-environment") (memory $memory) (realloc $realloc)))
  (core func $arguments (canon lower (func $environment "get-arguments") (memory $memory) (realloc $realloc)))

  (import "wasi:io/poll@0.2.0" (instance $polls
    (export "pollable" (type $pollable (sub resource)))
    (export "[method]pollable.block" (func (param "self" (borrow $pollable))))
    (export "poll" (func (param "in" (list (borrow $pollable))) (result (list u32))))))
  (alias export $polls "pollable" (type $pollable))
  (core func $block (canon lower (func $polls "[method]pollable.block")))
  (core func $poll (canon lower (func $polls "poll") (memory $memory) (realloc $realloc)))
  (core func $drop-pollable (canon resource.drop $pollable))

  (import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock
    (export "now" (func (result u64)))
    (export "subscribe-duration" (func (param "when" u64) (result (own $pollable))))))
  (core func $now (canon lower (func $clock "now")))
  (core func $subscribe (canon lower (func $clock "subscribe-duration")))

  (import "wasi:io/error@0.2.0" (instance $errors (export "error" (type $error (sub resource)))))
  (alias export $errors "error" (type $error))
  (import "wasi:io/streams@0.2.0" (instance $streams
    (export "output-stream" (type $stream (sub resource)))
    (type $failed' (variant (case "last-operation-failed" (own $error)) (case "closed")))
    (export "stream-error" (type $failed (eq $failed')))
    (export "[method]output-stream.check-write"
      (func (param "self" (borrow $stream)) (result (result u64 (error $failed)))))
    (export "[method]output-stream.write"
      (func (param "self" (borrow $stream)) (param "contents" (list u8)) (result (result (error $failed)))))
    (export "[method]output-stream.subscribe" (func (param "self" (borrow $stream)) (result (own $pollable))))))
  (alias export $streams "output-stream" (type $stream))
  (core func $check (canon lower (func $streams "[method]output-stream.check-write") (memory $memory)))
  (core func $write (canon lower (func $streams "[method]output-stream.write") (memory $memory)))
  (core func $ready (canon lower (func $streams "[method]output-stream.subscribe")))
  (core func $drop-stream (canon resource.drop $stream))

  (import "wasi:cli/stdout@0.2.0" (instance $standard (export "get-stdout" (func (result (own $stream))))))
  (core func $stdout (canon lower (func $standard "get-stdout")))
