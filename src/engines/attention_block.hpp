// What attention does with one block of logits, a matrix (queries, keys) whose columns lie `pitch` apart; rows are
// whole vectors. Read next: attention_body.hpp (the kernels of floats), attention.cpp (who calls them, and those of
// doubles).
#pragma once

#include <cstdint>

namespace rosin::engines {

/// Logits become e^(logit - the highest so far); `sums` of these are kept up, and `factors` tell what those of earlier
/// blocks have to be multiplied by.
template <class T> struct LogitBlock {
  T* logits = nullptr;
  int64_t pitch = 0, rows = 0, keys = 0;
  T *highest = nullptr, *sums = nullptr, *factors = nullptr;  // of each row
};

/// Logits become weights e^(logit - state), and the slopes of the weights those of the logits: weight * (slope - dot).
/// Where weights are dropped, `kept` has 0 or what the others are multiplied by.
template <class T> struct SlopeBlock {
  T *logits = nullptr, *slopes = nullptr;
  const T *kept = nullptr, *state = nullptr, *dots = nullptr;  // state and dots: of each row
  int64_t pitch = 0, rows = 0, keys = 0;
};

template <class T> struct AttentionKernels {
  bool (*fold)(const LogitBlock<T>&);  // whether a factor is not 1
  void (*weigh)(const SlopeBlock<T>&);
};

}  // namespace rosin::engines
