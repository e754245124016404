// Byte pairs joined by rank. Read first: text.hpp, word_ends.hpp, bpe_files.hpp.
#include <algorithm>
#include <atomic>
#include <bit>
#include <queue>
#include <unordered_map>

#include <rosin/error.hpp>
#include <rosin/text.hpp>

#include "data/bpe_files.hpp"
#include "data/word_ends.hpp"

namespace rosin {
namespace {

struct Merge {
  int32_t rank;   // its place in merges.txt
  int32_t token;  // what the pair becomes
};
constexpr Merge no_merge{INT32_MAX, -1};

/// Pairs of tokens, by hash and linear probing; it never grows after load.
class PairTable {
 public:
  explicit PairTable(size_t pairs) : slots_(std::bit_ceil(2 * pairs + 2)) {}

  /// False: the pair is there already.
  bool add(int32_t left, int32_t right, Merge merge) {
    Slot& slot = slots_[place_of(left, right)];
    if (slot.left >= 0) return false;
    slot = {left, right, merge};
    return true;
  }
  Merge find(int32_t left, int32_t right) const noexcept { return slots_[place_of(left, right)].merge; }

 private:
  struct Slot {
    int32_t left = -1;
    int32_t right = -1;
    Merge merge = no_merge;
  };
  size_t place_of(int32_t left, int32_t right) const noexcept {
    const uint64_t key = static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
    size_t at = static_cast<size_t>((key * 0x9e3779b97f4a7c15u) >> 32) & (slots_.size() - 1);
    while (slots_[at].left >= 0 && (slots_[at].left != left || slots_[at].right != right)) {
      at = (at + 1) & (slots_.size() - 1);
    }
    return at;
  }
  std::vector<Slot> slots_;
};

/// Where a word was encoded before: a slot holds the word that came last.
struct SeenWord {
  uint32_t begin;
  uint32_t size;  // 0: none
  uint32_t first_token;
  uint32_t tokens;
};

uint64_t hash_of(std::string_view word) noexcept {
  uint64_t hash = 0xcbf29ce484222325u;
  for (char byte : word) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
  return hash ^ hash >> 29;
}

constexpr size_t short_word = 32;

}  // namespace

struct BpeTokenizer::Vocabulary {
  Vocabulary(const std::string& vocab_path, const std::string& merges_path);

  void join(std::string_view word, std::vector<int32_t>& tokens) const;
  void join_short(std::string_view word, std::vector<int32_t>& tokens) const;
  void join_long(std::string_view word, std::vector<int32_t>& tokens) const;
  int32_t token_of_byte(char byte) const noexcept { return byte_tokens[static_cast<unsigned char>(byte)]; }

  std::atomic<int> owners{1};
  std::vector<std::string> texts;  // of each token
  std::unordered_map<std::string_view, int32_t> by_text;
  int32_t byte_tokens[256];
  PairTable pairs{0};
};

BpeTokenizer::Vocabulary::Vocabulary(const std::string& vocab_path, const std::string& merges_path) {
  const std::vector<std::string> names = read_token_names(vocab_path);
  std::unordered_map<std::string_view, int32_t> by_name;
  for (const std::string& name : names) {
    by_name.emplace(name, static_cast<int32_t>(by_name.size()));
    texts.push_back(bytes_of_name(name));
  }
  for (const std::string& text : texts) by_text.emplace(text, static_cast<int32_t>(&text - texts.data()));
  for (int byte = 0; byte < 256; ++byte) {
    const char text = static_cast<char>(byte);
    const auto found = by_text.find(std::string_view(&text, 1));
    if (found == by_text.end()) {
      refuse_text_file("BpeTokenizer", vocab_path, "1:1",
                       "each of the 256 bytes must have a token; byte " + std::to_string(byte) + " has none");
    }
    byte_tokens[byte] = found->second;
  }
  const std::vector<MergeLine> lines = read_merge_lines(merges_path);
  pairs = PairTable(lines.size());
  for (const MergeLine& line : lines) {
    const auto token_of = [&](const std::string& name) {
      const auto found = by_name.find(name);
      if (found != by_name.end()) return found->second;
      refuse_text_file("BpeTokenizer", merges_path, std::to_string(line.line), "the vocabulary has no '" + name + "'");
    };
    const Merge merge{static_cast<int32_t>(&line - lines.data()), token_of(line.left + line.right)};
    if (!pairs.add(token_of(line.left), token_of(line.right), merge)) {
      refuse_text_file("BpeTokenizer", merges_path, std::to_string(line.line),
                       "the pair '" + line.left + " " + line.right + "' came before");
    }
  }
}

/// The pair of the lowest rank becomes one token until no pair has a rank; of equal ranks the leftmost.
void BpeTokenizer::Vocabulary::join_short(std::string_view word, std::vector<int32_t>& tokens) const {
  int32_t parts[short_word];
  Merge merges[short_word];  // merges[i]: parts[i] with parts[i + 1]
  size_t count = word.size();
  for (size_t i = 0; i < count; ++i) parts[i] = token_of_byte(word[i]);
  for (size_t i = 0; i + 1 < count; ++i) merges[i] = pairs.find(parts[i], parts[i + 1]);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (merges[i].rank < merges[best].rank) best = i;
    }
    if (merges[best].token < 0) break;
    parts[best] = merges[best].token;
    --count;
    for (size_t i = best + 1; i < count; ++i) parts[i] = parts[i + 1];
    for (size_t i = best + 1; i + 1 < count; ++i) merges[i] = merges[i + 1];
    if (best + 1 < count) merges[best] = pairs.find(parts[best], parts[best + 1]);
    if (best > 0) merges[best - 1] = pairs.find(parts[best - 1], parts[best]);
  }
  tokens.insert(tokens.end(), parts, parts + count);
}

/// The same with a heap, so that a word of a million bytes takes no quadratic time.
void BpeTokenizer::Vocabulary::join_long(std::string_view word, std::vector<int32_t>& tokens) const {
  struct Part {
    int32_t token;  // -1: joined to the part before
    int64_t before;
    int64_t after;
  };
  struct Candidate {
    Merge merge;
    int64_t left;
    int32_t left_token;
    int32_t right_token;
    bool operator<(const Candidate& other) const noexcept {
      return merge.rank != other.merge.rank ? merge.rank > other.merge.rank : left > other.left;
    }
  };
  const auto size = static_cast<int64_t>(word.size());
  std::vector<Part> parts;
  for (int64_t i = 0; i < size; ++i) parts.push_back({token_of_byte(word[static_cast<size_t>(i)]), i - 1, i + 1});
  const auto part = [&](int64_t i) -> Part& { return parts[static_cast<size_t>(i)]; };
  std::priority_queue<Candidate> candidates;
  const auto offer = [&](int64_t left) {
    if (left < 0 || part(left).after >= size) return;
    const int32_t a = part(left).token, b = part(part(left).after).token;
    if (const Merge merge = pairs.find(a, b); merge.token >= 0) candidates.push({merge, left, a, b});
  };
  for (int64_t i = 0; i < size; ++i) offer(i);
  while (!candidates.empty()) {
    const Candidate best = candidates.top();
    candidates.pop();
    Part& left = part(best.left);
    if (left.token != best.left_token || left.after >= size || part(left.after).token != best.right_token) continue;
    Part& right = part(left.after);
    left.token = best.merge.token;
    left.after = right.after;
    right.token = -1;
    if (left.after < size) part(left.after).before = best.left;
    offer(left.before);
    offer(best.left);
  }
  for (int64_t i = 0; i < size; i = part(i).after) tokens.push_back(part(i).token);
}

void BpeTokenizer::Vocabulary::join(std::string_view word, std::vector<int32_t>& tokens) const {
  return word.size() <= short_word ? join_short(word, tokens) : join_long(word, tokens);
}

BpeTokenizer BpeTokenizer::load(const std::string& vocab_path, const std::string& merges_path) {
  return BpeTokenizer(new Vocabulary(vocab_path, merges_path));
}

BpeTokenizer::BpeTokenizer(const BpeTokenizer& other) noexcept : vocabulary_(other.vocabulary_) {
  if (vocabulary_) vocabulary_->owners.fetch_add(1, std::memory_order_relaxed);
}
BpeTokenizer::~BpeTokenizer() {
  if (vocabulary_ && vocabulary_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete vocabulary_;
}

std::vector<int32_t> BpeTokenizer::encode(std::string_view text) const {
  if (text.size() >= size_t{1} << 31) {
    throw Error(ErrorKind::argument, "encode: a text has less than 2^31 bytes; got " + std::to_string(text.size()) +
                                         "; cut it at the end of a line");
  }
  std::vector<int32_t> tokens;
  std::vector<SeenWord> seen(std::bit_ceil(std::min(text.size() / 8 + 1, size_t{1} << 15)));
  for (size_t at = 0; at < text.size();) {
    const size_t end = word_end(text, at);
    const std::string_view word = text.substr(at, end - at);
    const size_t first = tokens.size();
    SeenWord& slot = seen[static_cast<size_t>(hash_of(word)) & (seen.size() - 1)];
    if (slot.size != 0 && text.substr(slot.begin, slot.size) == word) {
      tokens.resize(first + slot.tokens);
      std::copy_n(tokens.begin() + slot.first_token, slot.tokens, tokens.begin() + static_cast<std::ptrdiff_t>(first));
    } else {
      vocabulary_->join(word, tokens);
      slot = {static_cast<uint32_t>(at), static_cast<uint32_t>(word.size()), static_cast<uint32_t>(first),
              static_cast<uint32_t>(tokens.size() - first)};
    }
    at = end;
  }
  return tokens;
}

std::string BpeTokenizer::decode(std::span<const int32_t> tokens) const {
  std::string text;
  for (int32_t token : tokens) {
    if (token < 0 || token >= vocab_size()) {
      throw Error(ErrorKind::argument,
                  "decode: a token is in [0, " + std::to_string(vocab_size()) + "); got " + std::to_string(token));
    }
    text += vocabulary_->texts[static_cast<size_t>(token)];
  }
  return text;
}

int64_t BpeTokenizer::vocab_size() const noexcept { return static_cast<int64_t>(vocabulary_->texts.size()); }

int32_t BpeTokenizer::token(std::string_view text) const noexcept {
  const auto found = vocabulary_->by_text.find(text);
  return found == vocabulary_->by_text.end() ? -1 : found->second;
}

}  // namespace rosin
