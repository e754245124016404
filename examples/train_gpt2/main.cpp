// Trains GPT-2 as its paper has it (124M parameters unless told otherwise) on a file of tokens: bf16 products beside
// Float32 parameters, AdamW, gradients of several batches together, warm-up and cosine.
//   train_gpt2 data=train.bin [steps=100] [batch=8] [length=1024] [accumulate=4] [rate=6e-4] [type=bf16] ...
// The file has 16-bit tokens, as those of nanoGPT; a header of llm.c (1 KiB) is left out. Keys: data, val, steps,
// batch, length, accumulate, rate, warmup, layers, width, heads, vocabulary, dropout, type (bf16, f16, f32), device,
// peak (of the device, TFLOP/s), json (a file), weights (to begin with), save, seed.
#include <rosin/rosin.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../models/gpt2.hpp"
#include "../models/measure.hpp"

namespace {

using namespace rosin;

/// Windows of a file of tokens, one after another; what is left at the end begins anew.
class Tokens {
 public:
  explicit Tokens(const std::string& path) : file_(path, std::ios::binary) {
    int32_t magic = 0;
    file_.read(reinterpret_cast<char*>(&magic), sizeof magic);
    if (!file_) throw std::runtime_error("no tokens in " + path + "; name a file with data=");
    begin_ = magic == 20240520 ? 1024 : 0;
    file_.seekg(0, std::ios::end);
    count_ = (static_cast<int64_t>(file_.tellg()) - begin_) / 2;
  }

  /// Tokens (length, batch), and what follows each of them.
  std::pair<Array, Array> next(int64_t length, int64_t batch) {
    const int64_t wanted = length * batch;
    if (count_ < wanted + 1) throw std::runtime_error("a batch needs " + std::to_string(wanted + 1) + " tokens");
    if (at_ + wanted + 1 > count_) at_ = 0;
    std::vector<uint16_t> words(static_cast<size_t>(wanted + 1));
    file_.seekg(begin_ + 2 * at_);
    file_.read(reinterpret_cast<char*>(words.data()), static_cast<std::streamsize>(2 * words.size()));
    at_ += wanted;
    const std::vector<int32_t> tokens(words.begin(), words.end());
    const std::span<const int32_t> all(tokens);
    const Shape shape{length, batch};
    return {Array(all.first(static_cast<size_t>(wanted)), shape), Array(all.last(static_cast<size_t>(wanted)), shape)};
  }

 private:
  std::ifstream file_;
  int64_t begin_ = 0, count_ = 0, at_ = 0;
};

/// Multiplications and additions of a step: two for each parameter and token forward, twice that back, and the scores.
double flops(const models::GPT2LMHead& model, const models::GPT2Options& options, int64_t length, int64_t tokens) {
  const auto parameters = static_cast<double>(parameter_count(model) - options.positions * options.width);
  const auto scores = static_cast<double>(2 * options.layers * options.width * length);
  return 6 * static_cast<double>(tokens) * (parameters + scores);
}

Array loss_of(const models::GPT2LMHead& model, const Array& tokens, const Array& next, DType type) {
  const Autocast scope = models::scope_of(type);
  return labelcrossentropy(model(tokens), next);
}

void train_gpt2(models::Words& words) {
  const int64_t steps = words.count("steps", 100), batch = words.count("batch", 8);
  const int64_t length = words.count("length", 1024), accumulate = words.count("accumulate", 4);
  models::GPT2Options options{.dropout = words.number("dropout", 0)};
  options.layers = words.count("layers", options.layers);
  options.width = words.count("width", options.width);
  options.heads = words.count("heads", options.heads);
  options.vocabulary = words.count("vocabulary", options.vocabulary);
  options.positions = std::max(options.positions, length);
  const double rate = words.number("rate", 6e-4), peak = 1e12 * words.number("peak", 0);
  const int64_t rising = words.count("warmup", steps / 10), falling = std::max<int64_t>(steps - rising, 1);
  const auto schedule = warmup(rising, CosineRate{.start = rate, .end = rate / 10, .steps = falling});
  const DType type = words.type();
  const Device device = words.device();
  Tokens data(words.text("data"));
  const std::string validation = words.text("val"), weights = words.text("weights"), result = words.text("save");
  const std::string json = words.text("json");
  seed(static_cast<uint64_t>(words.count("seed", 1)));
  words.finish();

  models::GPT2LMHead model = models::gpt2(options);
  if (!weights.empty()) load(weights, model, {.names = torch});
  model = model | device;
  const OptimiserChain rule(AccumGrad{accumulate}, AdamW{.eta = rate, .beta = {0.9, 0.95}, .lambda = 0.1});
  State state = models::state_for(type, rule, model);
  const int64_t tokens = batch * length * accumulate;
  std::printf("%lld parameters, %lld tokens a step, %s\n", static_cast<long long>(parameter_count(model)),
              static_cast<long long>(tokens), to_string(type));
  models::Measure measure({"tokens", static_cast<double>(tokens), flops(model, options, length, tokens), peak}, json);
  for (int64_t step = 0; step < steps; ++step) {
    adjust(state, schedule(step));
    Array total;
    for (int64_t part = 0; part < accumulate; ++part) {
      const auto [x, y] = data.next(length, batch) | device;
      const auto scaled = [&](const models::GPT2LMHead& m) {
        const Array loss = loss_of(m, x, y, type);
        return std::pair(scaled_loss(state, loss), loss);
      };
      const auto [losses, grad] = withgradient(scaled, model);
      update(state, model, grad);
      total = total.is_nothing() ? losses.second : total + losses.second;
    }
    measure.step(step, total / accumulate, schedule(step));
  }
  if (!validation.empty()) {
    const auto [x, y] = Tokens(validation).next(length, batch) | device;
    testmode(model);
    std::printf("validation loss %.4f\n", loss_of(model, x, y, type).item());
  }
  if (type == Float16) std::printf("skipped steps: %lld\n", static_cast<long long>(loss_scale(state).skipped));
  if (!result.empty()) save(result, model, {.names = torch});
}

}  // namespace

int main(int count, char** words) { return models::run("train_gpt2", train_gpt2, count, words); }
