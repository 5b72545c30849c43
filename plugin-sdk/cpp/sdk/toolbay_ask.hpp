// Questions to the caller: forms, pages to visit, texts of the client's model, and
// the user's folders.
//
//     struct Confirmation {
//         toolbay::required<bool, "Really delete it?"> yes;
//     };
//
//     const auto answer = toolbay::ask(toolbay::form<Confirmation>{.key = "sure", .message = "This deletes everything."});
//     if (answer && answer->yes) delete_everything();
//
// The host does not wait for an answer: it ends the call. When it has the answer, it
// runs the call again from the beginning, and `ask` returns immediately. So ask before
// you change anything.
#pragma once

#include <array>
#include <expected>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "toolbay.hpp"

namespace toolbay {

// The reason why there is no answer.
enum class refusal {
    declined = TOOLBAY_DECLINED,       // the user refused
    cancelled = TOOLBAY_CANCELLED,     // the user closed the form without a decision
    unsupported = TOOLBAY_UNSUPPORTED, // the client cannot answer an optional question
    not_asked = TOOLBAY_NOT_ASKED,     // something is wrong with the question, or with an earlier operation of the plugin
};

struct no_answer {
    refusal why;
    std::string message; // as a sentence
};

// The answer, or the reason why there is none.
template <typename T>
using reply = std::expected<T, no_answer>;

namespace detail {

// The types that a field of a form can have.
template <typename T>
struct in_form : std::bool_constant<std::is_arithmetic_v<T> || std::is_enum_v<T> || std::same_as<T, std::string>> {};
template <typename T>
struct in_form<std::optional<T>> : in_form<T> {};
template <typename T>
    requires(list<T>)
struct in_form<T> : std::is_enum<typename T::value_type> {};

template <typename T>
constexpr bool is_pattern = false;
template <std::size_t Size>
constexpr bool is_pattern<pattern<Size>> = true;

template <typename... Constraints>
constexpr bool without_pattern(const std::tuple<Constraints...> &) {
    return (!is_pattern<std::remove_cvref_t<Constraints>> && ...);
}

template <typename T>
std::string form_schema() {
    const T fields{};
    each_field(fields, []<typename Field>(std::string_view, const Field &) {
        using traits = traits<Field>;
        static_assert(in_form<typename traits::type>::value,
                      "a field of a form is a string, a number, a bool, an enum, or a list of an enum");
        static_assert(without_pattern(traits::constraints), "clients cannot show a pattern in a form");
    });
    return schema<T>(schema_use::form);
}

// A question for the C interface, and the texts that it points to.
struct asking {
    toolbay_question question = {};
    std::string more = {};
    std::vector<toolbay_message> messages = {};
};

template <typename Value>
std::string member_of(const toolbay_json *object, const char *name, Value &value) {
    const toolbay_json *member = toolbay_json_get(object, toolbay_str(name));
    return member ? read(member, name, value) : std::format("`{}` is missing", name);
}

} // namespace detail

// A form for the user to fill in. T is a struct of strings, numbers, bools, enums and
// lists of enums. Do not ask for secrets: the client shows what the user types.
template <typename T>
struct form {
    std::string key; // identifies the question within the call: 1 to 64 characters of A-Z a-z 0-9 _ - .
    std::string message;
    bool optional = false; // if set, a client that cannot answer leads to refusal::unsupported; without it, the call ends

    using answer = T;

    detail::asking asking() const {
        detail::asking asking;
        asking.question.kind = TOOLBAY_FORM;
        asking.question.message = message.c_str();
        asking.more = "{\"requestedSchema\":" + detail::form_schema<T>() + "}";
        return asking;
    }

    static std::string read(const toolbay_reply &reply, T &fields) {
        const toolbay_json *content = toolbay_json_get(reply.result, toolbay_str("content"));
        if (!content) content = toolbay_json_parse(toolbay_str("{}"));
        return detail::read(content, "(root)", fields);
    }
};

// The answer for a page that the user agreed to open. It does not state what happened on the page.
struct visited {};

// A page for the user to open, such as one to sign in. The URL begins with https://.
struct visit {
    std::string key;
    std::string message;
    std::string url;
    bool optional = false;

    using answer = visited;

    detail::asking asking() const {
        detail::asking asking;
        asking.question.kind = TOOLBAY_VISIT;
        asking.question.message = message.c_str();
        asking.question.url = url.c_str();
        return asking;
    }

    static std::string read(const toolbay_reply &, visited &) {
        return {};
    }
};

// The text that the client's model wrote.
struct sampled {
    std::string text;        // several blocks are joined by line feeds
    std::string model;       // the model that wrote it, if the client states it
    std::string stop_reason; // such as endTurn or maxTokens, if the client states it
    json result;             // the whole result, as in MCP
};

// The author of a message.
enum class role : unsigned { user = TOOLBAY_USER, assistant = TOOLBAY_ASSISTANT };

// One message of a conversation.
struct message {
    toolbay::role role = role::user;
    std::string text;
};

// A text for the client's model to write.
struct sampling {
    std::string key;
    std::string text = {}; // the user's text; or a conversation:
    std::vector<message> messages = {};
    std::string system = {}; // the system prompt
    unsigned max_tokens;
    json more = {}; // further parameters as in MCP, such as temperature: an object
    bool optional = false;

    using answer = sampled;

    detail::asking asking() const {
        detail::asking asking;
        asking.question.kind = TOOLBAY_SAMPLING;
        if (messages.empty()) asking.messages.push_back({TOOLBAY_USER, text.c_str()});
        for (const message &message : messages) {
            asking.messages.push_back({static_cast<toolbay_role>(message.role), message.text.c_str()});
        }
        if (!system.empty()) asking.question.system = system.c_str();
        asking.question.max_tokens = max_tokens;
        asking.more = more.text;
        return asking;
    }

    static std::string read(const toolbay_reply &reply, sampled &sampled) {
        sampled.text = detail::text(reply.text);
        detail::member_of(reply.result, "model", sampled.model);
        detail::member_of(reply.result, "stopReason", sampled.stop_reason);
        sampled.result.text = detail::text(toolbay_json_text(reply.result));
        return {};
    }
};

// A folder that the user works in. The plugin can open it only if its grant allows that.
struct root {
    std::string uri; // begins with file://
    std::optional<std::string> name;
};

// The folders that the user works in.
struct roots {
    std::string key;
    bool optional = false;

    using answer = std::vector<root>;

    static detail::asking asking() {
        detail::asking asking;
        asking.question.kind = TOOLBAY_ROOTS;
        return asking;
    }

    static std::string read(const toolbay_reply &reply, std::vector<root> &roots) {
        return detail::member_of(reply.result, "roots", roots);
    }
};

namespace detail {

template <typename Question>
toolbay::reply<typename Question::answer> reply_to(const Question &question, const toolbay_reply &reply) {
    const auto refuse = [](refusal why, std::string_view message) {
        return std::unexpected(no_answer{why, std::string(message)});
    };
    switch (reply.outcome) {
    case TOOLBAY_ACCEPTED: break;
    case TOOLBAY_DECLINED: return refuse(refusal::declined, "the user declined");
    case TOOLBAY_CANCELLED: return refuse(refusal::cancelled, "the user cancelled");
    case TOOLBAY_UNSUPPORTED: return refuse(refusal::unsupported, reply.message);
    case TOOLBAY_NOT_ASKED: return refuse(refusal::not_asked, reply.message);
    }
    typename Question::answer answer{};
    const std::string problem = Question::read(reply, answer);
    if (problem.empty()) return answer;
    return refuse(refusal::not_asked, std::format("the answer to the question `{}`: {}", question.key, problem));
}

} // namespace detail

// Asks the caller one question, or several at once:
//
//     const auto answer = toolbay::ask(toolbay::form<Name>{...});
//     const auto [signed_in, folders] = toolbay::ask(toolbay::visit{...}, toolbay::roots{...});
template <typename... Questions>
auto ask(const Questions &...questions) {
    std::array<detail::asking, sizeof...(Questions)> asking = {questions.asking()...};
    std::array<toolbay_question, sizeof...(Questions)> lowered = {};
    std::size_t next = 0;
    const auto lower = [&](const auto &question) {
        detail::asking &from = asking[next];
        from.question.key = question.key.c_str();
        from.question.optional = question.optional;
        from.question.more = from.more.empty() ? nullptr : from.more.c_str();
        from.question.messages = from.messages.empty() ? nullptr : from.messages.data();
        from.question.message_count = from.messages.size();
        lowered[next++] = from.question;
    };
    (lower(questions), ...);
    const toolbay_reply *replies = toolbay_ask_all(lowered.data(), lowered.size());
    if constexpr (sizeof...(Questions) == 1) {
        return detail::reply_to(questions..., replies[0]);
    } else {
        std::size_t read = 0;
        // Braces, so that the replies are read in order.
        return std::tuple{detail::reply_to(questions, replies[read++])...};
    }
}

} // namespace toolbay
