"""Rule: what a file uses of the standard library is included, by the file or by headers of ours that it includes.

The builds have the standard library in a precompiled header, so the compiler does not notice a forgotten include. Names
that almost every standard header declares (std::move, std::size_t, std::min) are not looked at.
"""

import functools
import re

# header: the names that it is included for. Where several headers declare a name it is in the line of each.
DECLARES = {
    "algorithm": "any_of all_of none_of clamp count_if equal_range find_if is_sorted max_element min_element nth_element partition "
                 "remove_if reverse rotate set_difference shuffle sort stable_sort transform unique upper_bound",
    "array": "array to_array",
    "atomic": "atomic atomic_flag memory_order_acquire memory_order_relaxed memory_order_release memory_order_acq_rel",
    "bit": "bit_cast bit_ceil bit_width countl_zero countr_zero popcount rotl rotr",
    "charconv": "chars_format from_chars to_chars from_chars_result to_chars_result",
    "chrono": "chrono",
    "cmath": "ceil floor isfinite isinf isnan log log2 lround pow sqrt",
    "concepts": "convertible_to integral invocable same_as signed_integral unsigned_integral",
    "condition_variable": "condition_variable condition_variable_any",
    "cstdint": "int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t uintptr_t",
    "cstdio": "FILE fclose fflush fopen fprintf fputs fread fwrite printf puts snprintf",
    "cstdlib": "_Exit abort exit getenv strtod strtol strtoull system",
    "cstring": "memchr memcmp memcpy memmove memset strerror strlen strsignal",
    "deque": "deque",
    "filesystem": "filesystem",
    "fstream": "fstream ifstream ofstream",
    "functional": "bind function hash invoke not_fn ref",
    "future": "async future promise",
    "iomanip": "setw setprecision",
    "iostream": "cerr cin cout",
    "limits": "numeric_limits",
    "list": "list",
    "map": "map multimap",
    "memory": "enable_shared_from_this make_shared make_unique owner_less shared_ptr static_pointer_cast unique_ptr weak_ptr",
    "mutex": "call_once lock_guard mutex once_flag recursive_mutex scoped_lock unique_lock",
    "numbers": "numbers",
    "numeric": "accumulate gcd iota",
    "optional": "nullopt optional",
    "queue": "priority_queue queue",
    "random": "bernoulli_distribution discrete_distribution mt19937 mt19937_64 random_device uniform_int_distribution",
    "regex": "regex",
    "set": "multiset set",
    "shared_mutex": "shared_lock shared_mutex",
    "span": "span",
    "sstream": "istringstream ostringstream stringstream",
    "stdexcept": "invalid_argument logic_error runtime_error",
    "stop_token": "stop_callback stop_source stop_token",
    "string": "char_traits string to_string",
    "string_view": "string_view",
    "system_error": "error_code generic_category make_error_code system_category",
    "thread": "this_thread thread",
    "tuple": "tie tuple",
    "unordered_map": "unordered_map",
    "unordered_set": "unordered_set",
    "variant": "get_if holds_alternative monostate variant visit",
    "vector": "vector",
}
# What a header is documented to bring along, or cannot do without.
BRINGS = {
    "condition_variable": ["mutex", "chrono"],
    "filesystem": ["chrono", "string", "string_view", "system_error"],
    "fstream": ["string"],
    "future": ["thread", "mutex"],
    "iostream": ["string"],
    "map": [],
    "mutex": ["chrono"],
    "sstream": ["string", "string_view"],
    "stdexcept": ["string"],
    "string": ["string_view"],
    "system_error": ["string"],
    "thread": ["chrono", "stop_token"],
    # Headers from outside that cannot be used without these.
    "gtest/gtest.h": ["string", "vector", "memory", "set", "tuple", "iostream", "sstream", "functional", "map", "limits"],
    "rapidcheck.h": ["string", "vector", "functional", "memory"],
}

NAME_USED = re.compile(r"\bstd::(\w+)")
# Comments, string literals (raw ones too) and character literals: no names are used there.
NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.DOTALL)


def _declared_in():
    where = {}
    for header, names in DECLARES.items():
        for name in names.split():
            where.setdefault(name, set()).add(header)
    return where


DECLARED_IN = _declared_in()


class Closure:
    """The headers from outside that a file of ours includes, directly or through others of ours."""

    def __init__(self, tree):
        self.tree = tree
        self.of = functools.lru_cache(maxsize=None)(self._of)

    def _of(self, path):
        found, seen, waiting = set(), {path}, [path]
        while waiting:
            current = waiting.pop()
            for _, quote, name in self.tree.includes(current):
                target = self.tree.find_include(current, quote, name)
                if target is None:
                    found.update([name, *BRINGS.get(name, [])])
                elif target not in seen:
                    seen.add(target)
                    waiting.append(target)
        return frozenset(found)


def names_used(text):
    """(line number, name) of each first use of a name of the standard library."""
    code = NOT_CODE.sub(lambda match: "\n" * match.group(0).count("\n"), text)
    first = {}
    for number, line in enumerate(code.split("\n"), start=1):
        for match in NAME_USED.finditer(line):
            first.setdefault(match.group(1), number)
    return first


def check(tree):
    closure = Closure(tree)
    for path in tree.with_suffix(".h", ".cc"):
        if tree.is_data(path):
            continue
        included = closure.of(path)
        for name, number in sorted(names_used(tree.text(path)).items()):
            headers = DECLARED_IN.get(name)
            if headers and headers.isdisjoint(included):
                yield f"{path}:{number}: std::{name} is used without <{min(headers)}>"
