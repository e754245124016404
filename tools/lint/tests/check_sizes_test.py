"""What counts as a function, and that each budget is refused one line, one column or one file line too far."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import check_sizes  # noqa: E402


def names(text):
    return [name for name, _, _ in check_sizes.functions(text)]


class Functions(unittest.TestCase):
    def test_functions_of_every_form_are_found(self):
        for text, name in {
            "int f(int a) { return a; }": "f",
            "namespace a::b { namespace { void f() noexcept { } } }": "f",
            "struct S { int f() const { return 1; } int g{2}; };": "f",
            "template <class T> requires std::integral<T> auto f(T x) -> std::vector<T> { return {x}; }": "f",
            "S::S(int a) : a_{a}, b_(g(a)), c_{} { use(a); }": "S",
            "S::~S() { done(); }": "~S",
            "template <class T> requires(is<T>) S(T a) : S(g(a)) { }": "S",
            "bool operator==(const S& a, const S& b) { return true; }": "operator==",
            "Array operator()(const Array& x) const { return f(x); }": "operator()",
            'extern "C" { void f(void) { } }': "f",
            "const Op op = make([](int a) { return a; });\nint f() { return 0; }": "f",
            "auto f = [](int a) { return a; };": "lambda",
            "TEST(Shape, KeepsOrder) { EXPECT_TRUE(true); }": "TEST",
            "class S { public: void f() { if (a) { b(); } } };": "f",
        }.items():
            with self.subTest(text):
                self.assertEqual(names(text), [name])

    def test_types_tables_and_initialisers_are_no_functions(self):
        for text in (
            "struct S { int a = 1; std::vector<int> b = {1, 2}; };",
            "enum class Kind { a, b };",
            "const int table[] = {1, 2, 3};",
            "inline constexpr std::array<int, 2> pair{1, 2};",
            "const Rules rules = make_rules({{1, 2}, {3, 4}});",
            "using F = void (*)(int);",
            "void f(Options o = {.a = 1});",
        ):
            with self.subTest(text):
                self.assertEqual(names(text), [])

    def test_braces_in_comments_strings_and_macros_do_not_count(self):
        text = 'void f() {\n  // }\n  g("}{", \'{\', R"x(}}} " )x"); /* { */\n#define M {\n  h(1\'000);\n}\n'
        text += "void k() {}\n"
        self.assertEqual(check_sizes.functions(text), [("f", 1, 6), ("k", 7, 7)])

    def test_inner_blocks_and_lambdas_count_to_their_function(self):
        text = "int f() {\n  auto g = [&](int a) {\n    return a;\n  };\n  if (g(1)) {\n  }\n  return 0;\n}\n"
        self.assertEqual(check_sizes.functions(text), [("f", 1, 8)])


class Budgets(unittest.TestCase):
    def test_a_function_may_have_its_lines_and_not_one_more(self):
        body = "  a();\n" * (check_sizes.FUNCTION - 2)
        self.assertEqual(check_sizes.check_text("x.cpp", f"void f() {{\n{body}}}\n"), [])
        errors = check_sizes.check_text("x.cpp", f"void f() {{\n{body}  a();\n}}\n")
        self.assertEqual(errors, ["x.cpp:1: f has 61 lines; at most 60 a function"])

    def test_a_python_function_has_the_same_budget(self):
        errors = check_sizes.check_text("x.py", "def f():\n" + "    a()\n" * check_sizes.FUNCTION)
        self.assertEqual(errors, ["x.py:1: f has 61 lines; at most 60 a function"])

    def test_a_file_may_have_its_lines_and_not_one_more(self):
        self.assertEqual(check_sizes.check_text("x.cpp", "int a;\n" * check_sizes.FILE), [])
        errors = check_sizes.check_text("x.cpp", "int a;\n" * (check_sizes.FILE + 1))
        self.assertEqual(errors, ["x.cpp: 601 lines; at most 600 a file"])

    def test_columns_are_characters_not_bytes(self):
        self.assertEqual(check_sizes.check_text("x.cmake", "σ" * check_sizes.LINE), [])
        self.assertEqual(check_sizes.check_text("run", "σ" * 121), ["run:1: 121 columns; at most 120"])


if __name__ == "__main__":
    unittest.main()
