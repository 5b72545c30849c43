// Tests of a plugin on the machine where it is written, without a host.
//
//     assert(toolbay::test::call("greet", R"({"name": "Ada"})").text == "Hello, Ada.");
//
// A test is a separate program, built for your machine and not for WebAssembly.
// A test can catch what a tool throws.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "c/toolbay_test.h"
#include "toolbay.hpp"

namespace toolbay::test {

// One block of a result; a member that its kind does not have is empty.
struct block {
    std::string kind; // "text", "image", "audio", "resource_link" or "resource"
    std::string text, data, mime_type, uri, name, last_modified;
};

// The outcome of a call.
struct answer {
    bool failed = false;
    bool invalid_arguments = false; // it failed, and the arguments are to blame
    std::string text;               // the text blocks, a line feed between them; or the message of a failure
    std::optional<std::string> structured; // as JSON
    std::vector<block> blocks;
};

// Runs a tool with a JSON object. The schema is not checked: the host does that.
inline answer call(const std::string &tool, const std::string &arguments = "{}") {
    const auto text = [](const char *text) { return std::string(text ? text : ""); };
    const toolbay_answer called = toolbay_test_call(tool.c_str(), arguments.c_str());
    answer answer = {called.failed, called.invalid_arguments, text(called.text), {}, {}};
    if (called.structured) answer.structured = called.structured;
    for (std::size_t i = 0; i < called.count; i++) {
        const toolbay_block block = toolbay_test_block(called, i);
        answer.blocks.push_back({block.kind, detail::text(block.text), detail::text(block.data),
                                 text(block.mime_type), text(block.uri), text(block.name),
                                 text(block.last_modified)});
    }
    return answer;
}

// The schemas of a tool as JSON; empty if there is none, or no such tool.
inline std::string input_schema(const std::string &tool) {
    const char *schema = toolbay_test_input_schema(tool.c_str());
    return schema ? schema : "";
}

inline std::string output_schema(const std::string &tool) {
    const char *schema = toolbay_test_output_schema(tool.c_str());
    return schema ? schema : "";
}

// Sets a key of the grant's [config].
inline void config(const std::string &key, const std::string &value) {
    toolbay_test_config(key.c_str(), value.c_str());
}

// What toolbay::cancelled answers from now on.
inline void cancel(bool cancelled = true) {
    toolbay_test_cancel(cancelled);
}

// What was logged so far, a line each: "info: working".
inline std::string log() {
    return toolbay_test_log();
}

// How far the last toolbay::progress was.
inline double progress() {
    return toolbay_test_progress();
}

} // namespace toolbay::test
