//! Guests that are MCP servers themselves, and respond as no server should.

use super::put;
use crate::support::{Folder, own_server};

fn server(folder: &Folder) {
    put(folder, own_server("server"));
}

fn talker(folder: &Folder) {
    put(folder, own_server("talker"));
}

cases! {
    server_silent: Call, "its HTTP handler returns without a response", server
        => tool("silent", "{}")
        => fails("invalid-output", "The tool returned invalid output: its HTTP handler gave no response.");
    server_hang: Call, "its HTTP handler never responds", server
        => tool("hang", "{}") => grant("[limits]\ntimeout = \"1s\"\n")
        => fails("deadline", "The tool did not finish within 1s (to allow more, raise limits.timeout).");
    server_unfinished: Call, "its HTTP handler returns in the middle of its response", server
        => tool("unfinished", "{}")
        => fails("trap", "The tool crashed: its HTTP handler returned before its response was complete.");
    server_trap_before: Call, "its HTTP handler crashes before it responds", server
        => tool("trap-before", "{}")
        => fails("trap", "The tool crashed: wasm trap: wasm `unreachable` instruction executed.");
    server_trap_after_head: Call, "its HTTP handler crashes in the middle of its response", server
        => tool("trap-after-head", "{}")
        => fails("trap", "The tool crashed: wasm trap: wasm `unreachable` instruction executed.");
    server_trap_after_response: Call, "its HTTP handler crashes after its response", server
        => tool("trap-after-response", "{}")
        => answers("fine");
    server_stream_for_ever: Call, "its HTTP handler streams log messages forever", server
        => tool("stream-for-ever", "{}")
        => fails("output", "The tool passed more than 16.0 MiB to the host in one call (to allow more, raise limits.transfer).");
    server_stream_after_response: Call, "its HTTP handler continues to stream after its response", server
        => tool("stream-after-response", "{}")
        => answers("fine");
    server_answers_twice: Call, "its HTTP handler responds twice in one stream", server
        => tool("answer-twice", "{}")
        => answers("fine");
    server_early_hints: Call, "its HTTP handler responds with an informational status", server
        => tool("early-hints", "{}")
        => fails("invalid-output", "The tool returned invalid output: its response ended before it was complete: http protocol error.");
    server_odd_status: Call, "its HTTP handler responds with a status that does not exist", server
        => tool("odd-status", "{}")
        => fails("none", "The MCP server answered 799, \"<p>odd</p>\".");
    server_huge_headers: Call, "its HTTP handler responds with four megabytes of headers", server
        => tool("huge-headers", "{}")
        => fails("trap", "The tool crashed: total size of fields exceeds limit.");
    server_many_headers: Call, "its HTTP handler makes a hundred thousand sets of headers", server
        => tool("many-headers", "{}")
        => fails("limit", "The tool held more than 1,000 host resources open (to allow more, raise limits.handles).");
    server_compressed: Call, "its HTTP handler compresses its response without a request for that", server
        => tool("compressed", "{}")
        => fails("invalid-output", "The tool returned invalid output: its response is encoded (gzip), which was not requested.");
    server_large: Call, "its HTTP handler responds with 400 MB", server
        => tool("large", "{}")
        => fails("output", "The tool passed more than 16.0 MiB to the host in one call (to allow more, raise limits.transfer).");
    server_deep: Call, "its HTTP handler responds with a million nested lists", server
        => tool("deep", "{}")
        => fails("output", "…needs more than 128.0 MiB of memory when its JSON is parsed…");
    server_no_json: Call, "its HTTP handler responds with text that is not JSON", server
        => tool("no-json", "{}")
        => fails("none", "The MCP server answered 200 OK, \"<html>\".");
    server_wrong_id: Call, "its HTTP handler responds to another request", server
        => tool("wrong-id", "{}")
        => fails("none", "The MCP server answered 200 OK, …");
    server_error_code: Call, "its HTTP handler returns an error of WASI", server
        => tool("fail", "{}")
        => fails("invalid-output", "The tool returned invalid output: its HTTP handler failed: connection refused.");
    talker_silent: Call, "speaks MCP on standard output, and never responds", talker
        => tool("silent", "{}") => grant("[limits]\ntimeout = \"1s\"\n")
        => fails("deadline", "The tool did not finish within 1s (to allow more, raise limits.timeout).");
    talker_flood: Call, "speaks MCP on standard output, and floods it with text that is not a message", talker
        => tool("flood", "{}")
        => fails("output", "…wrote more than 8.0 MiB to standard output…");
    talker_exit: Call, "speaks MCP on standard output, and exits in the middle of a call", talker
        => tool("exit", "{}")
        => fails("none", "out of order");
}
