// Native tests of a plugin, without a host.
//
//     assert(toolbay::test::call("greet", R"({"name": "Ada"})").text == "Hello, Ada.");
//
// A test is a separate program, built for your machine and not for WebAssembly.
// A test can catch what a tool throws.
#pragma once

#include <cstdint>
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
    bool of_assistant = false; // true for a message of the model, in a prompt
    std::string meta;          // of an item of a resource, as JSON
};

// The outcome of a call.
struct answer {
    bool failed = false;
    bool invalid_arguments = false; // it failed because of the arguments
    std::string text;               // the text blocks, separated by line feeds; or the message of a failure
    std::optional<std::string> structured; // as JSON
    std::vector<block> blocks;
    std::string description;            // of a prompt
    std::optional<std::uint32_t> total; // of a completion, and whether there are more
    bool more = false;
};

// An answer of the C interface.
inline answer answer_of(const toolbay_answer &called) {
    const auto text = [](const char *text) { return std::string(text ? text : ""); };
    answer answer = {.failed = called.failed, .invalid_arguments = called.invalid_arguments, .text = text(called.text),
                     .structured = {}, .blocks = {}, .description = text(called.description), .total = {},
                     .more = called.more};
    if (called.structured) answer.structured = called.structured;
    if (called.total) answer.total = *called.total;
    for (std::size_t i = 0; i < called.count; i++) {
        const toolbay_block block = toolbay_test_block(called, i);
        answer.blocks.push_back({block.kind, detail::text(block.text), detail::text(block.data),
                                 text(block.mime_type), text(block.uri), text(block.name),
                                 text(block.last_modified), block.role == TOOLBAY_ASSISTANT, text(block.meta)});
    }
    return answer;
}

// Runs a tool with a JSON object. It does not check the schema: the host does that.
inline answer call(const std::string &tool, const std::string &arguments = "{}") {
    return answer_of(toolbay_test_call(tool.c_str(), arguments.c_str()));
}

// Fills in a prompt. The arguments are a JSON object of strings. Each block is a message.
inline answer prompt(const std::string &prompt, const std::string &arguments = "{}") {
    return answer_of(toolbay_test_prompt(prompt.c_str(), arguments.c_str()));
}

// Reads the resource with a URI. Each block is an item, of kind "resource". A resource
// that does not exist has no items.
inline answer read(const std::string &uri) {
    return answer_of(toolbay_test_read(uri.c_str()));
}

// Completes an argument of a prompt or a variable of a template. `given` are the
// arguments that are complete: a JSON object of strings. Each block is a value.
inline answer complete(const std::string &target, const std::string &argument, const std::string &typed,
                       const std::string &given = "{}") {
    return answer_of(toolbay_test_complete(target.c_str(), argument.c_str(), typed.c_str(), given.c_str()));
}

// Sets the client's answer to the question with this key: its result as JSON, such as
// {"action":"accept","content":{"yes":true}}; nothing if it cannot answer.
inline void respond(const std::string &key, const std::optional<std::string> &result) {
    toolbay_test_answer(key.c_str(), result ? result->c_str() : nullptr);
}

// Returns the last parameters of the question with this key, as JSON; empty if it was not asked.
inline std::string asked(const std::string &key) {
    const char *params = toolbay_test_asked(key.c_str());
    return params ? params : "";
}

// Returns the resources that were reported as updated so far, one per line.
inline std::string updated() {
    return toolbay_test_updated();
}

// Return the schemas of a tool as JSON; empty if there is no schema, or no such tool.
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

// Sets the result of toolbay::cancelled.
inline void cancel(bool cancelled = true) {
    toolbay_test_cancel(cancelled);
}

// Returns the log messages so far, one per line: "info: working".
inline std::string log() {
    return toolbay_test_log();
}

// Returns the value of the last toolbay::progress.
inline double progress() {
    return toolbay_test_progress();
}

} // namespace toolbay::test
