// Every kind, type, operation, count, number of parts and root, against the definition: each rank knows what all ranks
// give, and computes what must come out. Numbers are such that any order of combining gives the same.
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "rig.hpp"

namespace comm_test {
namespace {

struct Type {
  size_t bytes;
  enum { unsigned_whole, signed_whole, real, moved } class_;
  int fraction;  // bits of a real number's fraction
};
// In the order of rosin_comm_type.
constexpr Type types[] = {{1, Type::moved, 0},          {1, Type::unsigned_whole, 0}, {1, Type::signed_whole, 0},
                          {2, Type::signed_whole, 0},   {2, Type::unsigned_whole, 0}, {4, Type::signed_whole, 0},
                          {4, Type::unsigned_whole, 0}, {8, Type::signed_whole, 0},   {8, Type::unsigned_whole, 0},
                          {2, Type::real, 10},          {2, Type::real, 7},           {4, Type::real, 23},
                          {8, Type::real, 52},          {8, Type::moved, 0},          {16, Type::moved, 0}};
constexpr int type_count = 15, operation_count = 4;

uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

uint64_t given(int rank, size_t part, size_t index) {
  return mixed(static_cast<uint64_t>(rank + 1) * 0x9e3779b97f4a7c15u + part * 0x1000003u + index);
}

/// The bits of a number that has few digits: sign, exponent, fraction.
uint64_t encode(const Type& type, double number) {
  const int exponent_bits = static_cast<int>(type.bytes) * 8 - 1 - type.fraction;
  const uint64_t sign = static_cast<uint64_t>(std::signbit(number)) << (type.bytes * 8 - 1);
  if (number == 0) return sign;
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(number), &exponent);  // in [0.5, 1)
  const int biased = exponent - 1 + (1 << (exponent_bits - 1)) - 1;
  return sign | static_cast<uint64_t>(biased) << type.fraction |
         static_cast<uint64_t>(std::ldexp(fraction * 2 - 1, type.fraction));
}

double real_of(uint64_t random, int operation) {
  constexpr double factors[] = {1, -1, 2, 0.5};
  return operation == ROSIN_COMM_PRODUCT ? factors[random % 4] : static_cast<double>(random % 7) - 3;
}

void put(Bytes& to, size_t index, const Type& type, uint64_t bits) {
  std::memcpy(to.data() + index * type.bytes, &bits, std::min<size_t>(type.bytes, 8));
}

/// What a rank gives: elements [first, first + count) of a part.
Bytes gift(const Type& type, int operation, int rank, size_t part, size_t first, size_t count) {
  Bytes all(count * type.bytes);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t random = given(rank, part, first + i);
    put(all, i, type, type.class_ == Type::real ? encode(type, real_of(random, operation)) : random);
  }
  return all;
}

template <class T> T combined(T a, T b, int operation) {
  switch (operation) {
    case ROSIN_COMM_SUM: return a + b;
    case ROSIN_COMM_PRODUCT: return a * b;
    case ROSIN_COMM_MINIMUM: return std::min(a, b);
    default: return std::max(a, b);
  }
}

uint64_t whole_of(const Type& type, uint64_t random) {
  const size_t unused = 64 - type.bytes * 8;
  const uint64_t high = random << unused;
  if (type.class_ == Type::unsigned_whole) return high >> unused;
  return static_cast<uint64_t>(static_cast<int64_t>(high) >> unused);
}

/// What must come out of the gifts of all ranks.
Bytes reduced(const Type& type, int operation, int ranks, size_t part, size_t first, size_t count) {
  Bytes all(count * type.bytes);
  for (size_t i = 0; i < count; ++i) {
    double number = real_of(given(0, part, first + i), operation);
    uint64_t whole = whole_of(type, given(0, part, first + i));
    for (int rank = 1; rank < ranks; ++rank) {
      const uint64_t random = given(rank, part, first + i);
      number = combined(number, real_of(random, operation), operation);
      const uint64_t next = whole_of(type, random);
      const bool ordered = operation == ROSIN_COMM_MINIMUM || operation == ROSIN_COMM_MAXIMUM;
      if (ordered && type.class_ == Type::signed_whole) {
        whole = static_cast<uint64_t>(combined(static_cast<int64_t>(whole), static_cast<int64_t>(next), operation));
      } else {
        whole = combined(whole, next, operation);
      }
    }
    put(all, i, type, type.class_ == Type::real ? encode(type, number) : whole);
  }
  return all;
}

/// One collective with its buffers: what is sent, what is received, what must be there afterwards.
struct Case {
  Rig& rig;
  int kind, type, operation, root;
  bool in_place;
  std::vector<size_t> counts;
  char* common = nullptr;  // where it receives, if all ranks do so in common

  const Type& t() const { return types[type]; }
  size_t ranks() const { return static_cast<size_t>(rig.ranks); }
  std::string text() const {
    std::string all = "kind " + std::to_string(kind) + " type " + std::to_string(type) + " operation " +
                      std::to_string(operation) + " root " + std::to_string(root) + (in_place ? " in place" : "");
    for (const size_t count : counts) all += " " + std::to_string(count);
    return all;
  }
  bool sends() const { return kind != ROSIN_COMM_BROADCAST || rig.rank == root; }
  bool receives() const {
    return kind == ROSIN_COMM_BROADCAST ? rig.rank != root : kind != ROSIN_COMM_REDUCE || rig.rank == root;
  }
  Bytes sent(size_t part) const {
    const size_t count = counts[part] * (kind == ROSIN_COMM_REDUCE_SCATTER ? ranks() : 1);
    return gift(t(), operation, rig.rank, part, 0, count);
  }
  Bytes expected(size_t part) const;
  void check() const;
};

Bytes Case::expected(size_t part) const {
  const size_t count = counts[part];
  if (kind == ROSIN_COMM_BROADCAST) return gift(t(), operation, root, part, 0, count);
  if (kind == ROSIN_COMM_REDUCE_SCATTER) {
    return reduced(t(), operation, rig.ranks, part, static_cast<size_t>(rig.rank) * count, count);
  }
  if (kind != ROSIN_COMM_ALLGATHER) return reduced(t(), operation, rig.ranks, part, 0, count);
  Bytes all;
  for (int rank = 0; rank < rig.ranks; ++rank) {
    const Bytes one = gift(t(), operation, rank, part, 0, count);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

void Case::check() const {
  constexpr unsigned char untouched = 0xa5;
  const size_t own = static_cast<size_t>(rig.rank);
  std::vector<Bytes> sends_(counts.size()), receives_(counts.size());
  std::vector<rosin_comm_part> parts;
  for (size_t i = 0; i < counts.size(); ++i) {
    const size_t bytes = counts[i] * t().bytes;
    sends_[i] = sent(i);
    receives_[i].assign(kind == ROSIN_COMM_ALLGATHER ? ranks() * bytes : bytes, untouched);
    rosin_comm_part part{sends_[i].data(), receives_[i].data(), counts[i]};
    if (in_place && kind == ROSIN_COMM_ALLGATHER) {
      std::copy(sends_[i].begin(), sends_[i].end(), receives_[i].begin() + static_cast<int64_t>(own * bytes));
      part.send = receives_[i].data() + own * bytes;
    } else if (in_place) {
      part.receive = sends_[i].data() + (kind == ROSIN_COMM_REDUCE_SCATTER ? own * bytes : 0);
    }
    if (!sends() && !in_place) part.send = nullptr;
    parts.push_back(part);
  }
  for (size_t i = 0, at = 0; common && i < counts.size(); at += (counts[i++] * t().bytes + 63) / 64 * 64) {
    parts[i].receive = common + at;
  }
  rig.in_common = common != nullptr;
  rig.expect_ok(rig.run(kind, type, operation, root, parts), text());
  rig.in_common = false;
  for (size_t i = 0; i < counts.size(); ++i) {
    const auto* got = static_cast<const unsigned char*>(parts[i].receive);
    const Bytes wanted = receives() ? expected(i) : in_place ? sent(i) : Bytes(counts[i] * t().bytes, untouched);
    rig.check(wanted.empty() || std::equal(wanted.begin(), wanted.end(), got), text() + ": part " + std::to_string(i));
  }
}

// Small parts of which one is empty, and one that is done in several turns.
const std::vector<std::vector<size_t>>& shapes() {
  static const std::vector<std::vector<size_t>> all = {{1, 0, 7}, {100003, 5}};
  return all;
}

// Half of all cases are in place, of each kind and type some.

void check_reductions(Rig& rig, int type) {
  for (int operation = 0; operation < operation_count; ++operation) {
    const bool in_place = (type + operation) % 2 == 0;
    const int root = (type + operation) % rig.ranks;
    for (const auto& counts : shapes()) {
      Case{rig, ROSIN_COMM_ALLREDUCE, type, operation, 0, in_place, counts}.check();
      Case{rig, ROSIN_COMM_REDUCE, type, operation, root, !in_place, counts}.check();
      const std::vector<size_t> fewer = {counts[0] / 3, counts.back()};
      Case{rig, ROSIN_COMM_REDUCE_SCATTER, type, operation, 0, in_place, fewer}.check();
    }
  }
}

void check_moves(Rig& rig, int type) {
  for (const auto& counts : shapes()) {
    const bool in_place = (static_cast<size_t>(type) + counts.size()) % 2 == 0;
    Case{rig, ROSIN_COMM_BROADCAST, type, 0, type % rig.ranks, in_place, counts}.check();
    Case{rig, ROSIN_COMM_ALLGATHER, type, 0, 0, !in_place, counts}.check();
  }
}

/// Every root, every kind both ways, with nothing and with one element.
void check_small(Rig& rig) {
  for (const std::vector<size_t>& counts : {std::vector<size_t>{}, {0}, {1}, {0, 0}}) {
    for (const bool in_place : {false, true}) {
      for (int root = 0; root < rig.ranks; ++root) {
        Case{rig, ROSIN_COMM_BROADCAST, ROSIN_COMM_FLOAT32, 0, root, in_place, counts}.check();
        Case{rig, ROSIN_COMM_REDUCE, ROSIN_COMM_FLOAT32, ROSIN_COMM_SUM, root, in_place, counts}.check();
      }
      for (const int kind : {ROSIN_COMM_ALLREDUCE, ROSIN_COMM_ALLGATHER, ROSIN_COMM_REDUCE_SCATTER}) {
        Case{rig, kind, ROSIN_COMM_BFLOAT16 - (kind == ROSIN_COMM_ALLGATHER), 0, 0, in_place, counts}.check();
      }
    }
  }
}

/// Each pair: one way, and the other way.
void check_mail(Rig& rig, int type, const std::vector<size_t>& counts) {
  const Type& t = types[type];
  for (int from = 0; from < rig.ranks; ++from) {
    const int to = (from + 1) % rig.ranks;
    if (from == to || (rig.rank != from && rig.rank != to)) continue;
    std::vector<Bytes> memory;
    std::vector<rosin_comm_part> parts;
    for (size_t i = 0; i < counts.size(); ++i) {
      memory.push_back(rig.rank == from ? gift(t, 0, from, i, 0, counts[i]) : Bytes(counts[i] * t.bytes));
      parts.push_back({memory[i].data(), memory[i].data(), counts[i]});
    }
    const bool sends = rig.rank == from;
    const rosin_comm_status status =
        rig.run(sends ? ROSIN_COMM_SEND : ROSIN_COMM_RECEIVE, type, 0, sends ? to : from, parts);
    if (status == ROSIN_COMM_UNSUPPORTED) continue;  // on both sides, or the other one waits in vain
    rig.expect_ok(status, "mail");
    for (size_t i = 0; i < counts.size(); ++i) {
      rig.check(memory[i] == gift(t, 0, from, i, 0, counts[i]), "mail of type " + std::to_string(type));
    }
  }
}

}  // namespace

void check_values(Rig& rig) {
  check_small(rig);
  for (int type = 0; type < type_count; ++type) {
    if (types[type].class_ != Type::moved) check_reductions(rig, type);
    check_moves(rig, type);
    for (const auto& counts : shapes()) check_mail(rig, type, counts);
    rig.expect_ok(rig.run(ROSIN_COMM_BARRIER, 0, 0, 0, {}), "barrier");
  }
}

/// The last rank has no addresses for it: no rank gets it, and all go on.
void check_refused_common(Rig& rig) {
  rlimit usual{};
  getrlimit(RLIMIT_AS, &usual);
  const rlimit none{1, usual.rlim_max};
  if (rig.rank == rig.ranks - 1) setrlimit(RLIMIT_AS, &none);
  void* memory = nullptr;
  const rosin_comm_status status = rig.functions->common(rig.comm, uint64_t{64} << 20, 60, &memory);
  setrlimit(RLIMIT_AS, &usual);
  rig.check(status == ROSIN_COMM_UNSUPPORTED && *rig.functions->error_text(), "more than a rank can have");
  rig.expect_ok(rig.run(ROSIN_COMM_BARRIER, 0, 0, 0, {}), "after that all goes on");
}

/// Nobody overwrites what is read: the next sum there begins when all have come to it.
void check_common(Rig& rig) {
  char* const first = rig.common(1000);
  if (!first) {
    rig.check(rig.common(1) == nullptr && *rig.functions->error_text(), "why there is none");
    return;
  }
  check_refused_common(rig);
  char* const common = rig.common(uint64_t{8} << 20);
  rig.check(common && rig.common(1000) == common, "what is large enough stays");
  for (int type = 0; common && type < type_count; ++type) {
    for (int operation = 0; types[type].class_ != Type::moved && operation < operation_count; ++operation) {
      for (const std::vector<size_t>& counts : {std::vector<size_t>{}, {0}, {1}, {1, 0, 7}, {300007, 5, 0, 100003}}) {
        Case{rig, ROSIN_COMM_ALLREDUCE, type, operation, 0, false, counts, common}.check();
      }
    }
  }
  float one = 1;
  rig.in_common = true;
  const auto refused = [&](int kind, void* receive, const char* what) {
    const rosin_comm_status status = rig.run(kind, ROSIN_COMM_FLOAT32, ROSIN_COMM_SUM, 0, {{&one, receive, 1}});
    rig.check(status == ROSIN_COMM_INVALID && *rig.functions->error_text(), what);
  };
  refused(ROSIN_COMM_ALLREDUCE, &one, "a part outside");
  refused(ROSIN_COMM_REDUCE, common, "another kind");
  rig.in_common = false;
}

}  // namespace comm_test
