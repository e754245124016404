// Tokenisers, judged by the packages tokenizers and regex (tests/oracles/tokens.txt).
#include <gtest/gtest.h>

#include <numeric>

#include <rosin/text.hpp>

#include "../tests/error_testing.hpp"
#include "../tests/oracle_reader.hpp"
#include "base/input_file.hpp"
#include "data/unicode_classes.hpp"
#include "data/word_ends.hpp"
#include "io/real_files_testing.hpp"

namespace rosin {
namespace {

using namespace rosin::testing;
using oracles::OracleArray;

std::string bytes_of(const OracleArray& array) {
  std::string text;
  for (int64_t byte : array.integers) text.push_back(static_cast<char>(byte));
  return text;
}
std::vector<int32_t> tokens_of(const OracleArray& array) { return {array.integers.begin(), array.integers.end()}; }

BpeTokenizer small_bpe() {
  return BpeTokenizer::load(oracles::oracle_path("bpe_vocab.json"), oracles::oracle_path("bpe_merges.txt"));
}

TEST(BpeTokenizer, GivesTheTokensOfThePackageTokenizers) {
  const BpeTokenizer tokenizer = small_bpe();
  EXPECT_EQ(tokenizer.vocab_size(), 700);
  int cases = 0;
  for (const auto& found : oracles::read_oracles(oracles::oracle_path("tokens.txt"))) {
    if (found.op != "gpt2_bpe") continue;
    const std::string text = bytes_of(found.inputs[0]);
    EXPECT_EQ(tokenizer.encode(text), tokens_of(found.outputs[0])) << text << ", line " << found.line;
    EXPECT_EQ(tokenizer.decode(tokens_of(found.outputs[0])), text) << "line " << found.line;
    ++cases;
  }
  EXPECT_GT(cases, 40);
}

TEST(BpeTokenizer, CutsWordsAsTheRegularExpressionDoes) {
  for (const auto& found : oracles::read_oracles(oracles::oracle_path("tokens.txt"))) {
    if (found.op != "words") continue;
    const std::string text = bytes_of(found.inputs[0]);
    std::vector<int32_t> ends;
    for (size_t at = 0; at < text.size(); ends.push_back(static_cast<int32_t>(at))) at = word_end(text, at);
    EXPECT_EQ(ends, tokens_of(found.outputs[0])) << text << ", line " << found.line;
  }
}

TEST(BpeTokenizer, LongWordsAreJoinedAsShortOnesAre) {
  const BpeTokenizer tokenizer = small_bpe();
  const std::string piece = "lowlowerlowest";
  std::string word;
  while (word.size() < 200000) word += piece;  // one word, which quadratic time would not finish
  const std::vector<int32_t> tokens = tokenizer.encode(word);
  EXPECT_EQ(tokenizer.decode(tokens), word);
  EXPECT_LT(tokens.size(), word.size() / 2);
}

TEST(BpeTokenizer, WordsThatCameBeforeAndCopiesGiveTheSame) {
  const BpeTokenizer tokenizer = small_bpe();
  BpeTokenizer copy = tokenizer;
  const std::vector<int32_t> once = tokenizer.encode(" the quick fox");
  std::string text;
  std::vector<int32_t> all;
  for (int i = 0; i < 1000; ++i) {
    text += " the quick fox";
    all.insert(all.end(), once.begin(), once.end());
  }
  EXPECT_EQ(copy.encode(text), all);
  EXPECT_EQ(tokenizer.token("<|endoftext|>"), 0);
  EXPECT_EQ(tokenizer.token("no such token at all"), -1);
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{0}), "<|endoftext|>");
  EXPECT_EQ(error_of([&] { tokenizer.decode(std::vector<int32_t>{700}); }, ErrorKind::argument),
            "decode: a token is in [0, 700); got 700");
}

class BpeFiles : public ScratchFolder {
 protected:
  std::string refusal(const std::string& vocabulary, const std::string& merges = "") const {
    write("vocab.json", vocabulary);
    write("merges.txt", merges);
    std::string text = error_of([&] { BpeTokenizer::load(path("vocab.json"), path("merges.txt")); }, ErrorKind::io);
    const std::string folder = path("");
    for (size_t at; (at = text.find(folder)) != std::string::npos;) text.erase(at, folder.size());
    return text;
  }
  /// The small vocabulary's text.
  std::string vocabulary() const {
    const auto bytes = read_whole_file(oracles::oracle_path("bpe_vocab.json"));
    return {bytes.begin(), bytes.end()};
  }
};

TEST_F(BpeFiles, BrokenVocabulariesAreRefusedWithThePlace) {
  EXPECT_EQ(refusal(""), "BpeTokenizer: vocab.json:1:1: the file must be an object of names and numbers");
  EXPECT_EQ(refusal("[1]"), "BpeTokenizer: vocab.json:1:1: the file must be an object of names and numbers");
  EXPECT_EQ(refusal("{}"), "BpeTokenizer: vocab.json:1:2: the vocabulary is empty");
  EXPECT_EQ(refusal("{\"a\": 0,\n \"b\": 1.5}"), "BpeTokenizer: vocab.json:2:7: a token must be a whole number");
  EXPECT_EQ(refusal("{\"a\": -1}"), "BpeTokenizer: vocab.json:1:7: a token must be a whole number");
  EXPECT_EQ(refusal("{\"a\": 99999999999999999999}"), "BpeTokenizer: vocab.json:1:7: a token must be a whole number");
  EXPECT_EQ(refusal("{\"a\": {}}"), "BpeTokenizer: vocab.json:1:7: a token must be a whole number");
  EXPECT_EQ(refusal("{\"a\": 0,}"), "BpeTokenizer: vocab.json:1:9: a name must stand in '\"'");
  EXPECT_EQ(refusal("{\"a\" 0}"), "BpeTokenizer: vocab.json:1:6: a ':' must follow a name");
  EXPECT_EQ(refusal("{\"a\": 0"), "BpeTokenizer: vocab.json:1:8: a ',' or '}' must follow an entry");
  EXPECT_EQ(refusal("{\"a\": 0} x"), "BpeTokenizer: vocab.json:1:10: nothing may follow the object");
  EXPECT_EQ(refusal("{\"a"), "BpeTokenizer: vocab.json:1:4: a name has no end");
  EXPECT_EQ(refusal("{\"a\xff\": 0}"), "BpeTokenizer: vocab.json:1:4: the file must be UTF-8");
  EXPECT_EQ(refusal("{\"\\x\": 0}"), "BpeTokenizer: vocab.json:1:3: no such escape");
  EXPECT_EQ(refusal("{\"\\u12"), "BpeTokenizer: vocab.json:1:3: no such escape");
  EXPECT_EQ(refusal("{\"\\udc00\": 0}"), "BpeTokenizer: vocab.json:1:9: half of a pair of surrogates stands alone");
  EXPECT_EQ(refusal("{\"\n\": 0}"), "BpeTokenizer: vocab.json:1:3: a control character in a name must be escaped");
  EXPECT_EQ(refusal("{\"a\": 0, \"a\": 1}"), "BpeTokenizer: vocab.json:1:10: the name 'a' came before");
  EXPECT_EQ(refusal("{\"a\": 0, \"b\": 0}"),
            "BpeTokenizer: vocab.json:1:10: tokens must be 0 ... 1 once each; got 0 again");
  EXPECT_EQ(refusal("{\"a\": 0, \"b\": 2}"), "BpeTokenizer: vocab.json:1:10: tokens must be 0 ... 1 once each; got 2");
  EXPECT_EQ(refusal("{\"a\": 0}"),
            "BpeTokenizer: vocab.json:1:1: each of the 256 bytes must have a token; byte 0 has none");
}

TEST_F(BpeFiles, BrokenPairsAreRefusedWithTheLine) {
  const std::string rule = "a line must be two names with a space between; got ";
  EXPECT_EQ(refusal(vocabulary(), "#version: 0.2\nt h e\n"), "BpeTokenizer: merges.txt:2: " + rule + "'t h e'");
  EXPECT_EQ(refusal(vocabulary(), "the\n"), "BpeTokenizer: merges.txt:1: " + rule + "'the'");
  EXPECT_EQ(refusal(vocabulary(), "\nt h"), "BpeTokenizer: merges.txt:1: " + rule + "''");
  EXPECT_EQ(refusal(vocabulary(), "t h\r\nt h\r\n"), "BpeTokenizer: merges.txt:2: the pair 't h' came before");
  EXPECT_EQ(refusal(vocabulary(), "t q\n"), "BpeTokenizer: merges.txt:1: the vocabulary has no 'tq'");
  EXPECT_NE(error_of([&] { BpeTokenizer::load(path("none"), path("merges.txt")); }, ErrorKind::io).find("none"),
            std::string::npos);
}

TEST(CharTokenizer, CountsTheSortedCharactersAsPythonDoes) {
  for (const auto& found : oracles::read_oracles(oracles::oracle_path("tokens.txt"))) {
    if (found.op != "characters") continue;
    const CharTokenizer tokenizer(bytes_of(found.inputs[0]));
    const std::string other = bytes_of(found.inputs[1]);
    EXPECT_EQ(tokenizer.encode(other), tokens_of(found.outputs[0]));
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(other)), other);
  }
}

TEST(CharTokenizer, SaysWhereACharacterIsUnknown) {
  const CharTokenizer tokenizer("abc"), open("abc", {.unknown = true});
  EXPECT_EQ(error_of([&] { tokenizer.encode("ab\xc3\xa9"); }, ErrorKind::argument),
            "encode: each character must be in the vocabulary; '\xc3\xa9' at byte 2 is not; make the tokenizer with "
            "{.unknown = true}");
  EXPECT_EQ(open.encode("a\xc3\xa9z"), (std::vector<int32_t>{0, 3, 3}));
  EXPECT_EQ(open.decode(std::vector<int32_t>{0, 3}), "a\xef\xbf\xbd");
  EXPECT_EQ(open.vocab_size(), 4);
  EXPECT_EQ(error_of([&] { CharTokenizer("ab\xff"); }, ErrorKind::argument),
            "CharTokenizer: the text must be UTF-8; byte 2 is not part of a character; ByteTokenizer takes any bytes");
  EXPECT_EQ(error_of([&] { tokenizer.decode(std::vector<int32_t>{-1}); }, ErrorKind::argument),
            "decode: a token is in [0, 3); got -1");
}

TEST(ByteTokenizer, GivesTheBytes) {
  const ByteTokenizer tokenizer;
  EXPECT_EQ(tokenizer.encode("a\xff"), (std::vector<int32_t>{97, 255}));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("\x01\xc3\xa9")), "\x01\xc3\xa9");
  EXPECT_EQ(error_of([&] { tokenizer.decode(std::vector<int32_t>{256}); }, ErrorKind::argument),
            "decode: a token is in [0, 256); got 256");
}

TEST(Utf8, EveryCodePointComesBackAndNothingElseIsTaken) {
  for (uint32_t value = 0; value <= 0x10ffff; ++value) {
    if (value >= 0xd800 && value < 0xe000) continue;
    std::string text;
    append_code_point(text, value);
    const CodePoint point = code_point_at(text, 0);
    ASSERT_TRUE(point.valid && point.value == value && point.bytes == text.size()) << value;
  }
  for (const char* broken : {"\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
                             "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\x80", "\xe2\x82", "\xe2\x28\xa1"}) {
    EXPECT_FALSE(code_point_at(broken, 0).valid) << broken;
  }
}

}  // namespace
}  // namespace rosin
