// One model from an ONNX file, as models.py asks for it: FILE INPUTS SECONDS, where INPUTS is an .npz file of x0, x1,
// ... (inputs) and y0 (what PyTorch gives first). Prints how far off the result is, the first call and the median of
// the later ones, in milliseconds.
#include <rosin/rosin.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <span>
#include <string>
#include <vector>

namespace {

using rosin::Array;

/// Dims of the file in reverse.
Array in_order(const Array& x) {
  std::vector<int> order;
  for (int d = x.rank(); d-- > 0;) order.push_back(d);
  Array turned = x.rank() < 2 ? x : permute(x, std::span<const int>(order));
  eval(turned);
  return turned;
}

template <class Work> double milliseconds(Work work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

int measure(const std::string& path, const std::string& inputs, double seconds) {
  const rosin::onnx::Model model = rosin::onnx::load(path);
  const rosin::SavedFile file = rosin::load(inputs);
  std::vector<Array> in;
  for (std::string name = "x0"; file.contains(name); name = "x" + std::to_string(in.size()))
    in.push_back(in_order(file[name]));
  const auto answer = [&] {
    rosin::Arrays out = model(std::span<const Array>(in));
    for (Array& y : out) eval(y);
    return out.front();
  };
  Array y;
  const double first = milliseconds([&] { y = answer(); });
  const Array wanted = in_order(file["y0"]);
  const auto largest = [](const Array& x) { return maximum(abs(x)).item<float>(); };
  const double off = static_cast<double>(largest(y - wanted) / largest(wanted));
  answer();  // packs weights
  std::vector<double> times;
  for (double spent = 0; times.size() < 5 || spent < seconds * 1e3; spent += times.back())
    times.push_back(milliseconds(answer));
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  std::cout << off << " " << first << " " << times[times.size() / 2] << "\n";
  return 0;
}

}  // namespace

int main(int count, char** words) try {
  if (count == 4) return measure(words[1], words[2], std::strtod(words[3], nullptr));
  std::cerr << "usage: bench_models FILE INPUTS SECONDS\n";
  return 2;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
