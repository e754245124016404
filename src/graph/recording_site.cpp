// See recording_site.hpp.
#include "graph/recording_site.hpp"

#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>

namespace rosin {
namespace {

constexpr size_t site_at = sizeof(Attributes) - sizeof(uint32_t);

/// The site of what is recorded outside of all calls, see SameSite.
constinit __attribute__((tls_model("initial-exec"))) thread_local uint32_t given_site = 0;

/// The layer of an error that has its path: part of no model.
constexpr char located_already = 0;
constexpr Error::Place nobody{&located_already, {}};

/// Never destroyed: runs may be looked at until the process ends.
struct Sites {
  std::mutex mutex;
  std::unordered_map<uint64_t, uint32_t> numbers;
  std::deque<std::string> paths;  // of number 1, 2, ...
};

Sites& known() {
  static auto* sites = new Sites;
  return *sites;
}

/// Empty where the innermost layer is the whole.
std::string path_of(const CallUnderWay* call) {
  Error probe(ErrorKind::internal, {});
  for (; call; call = call->outer()) call->locate(probe);
  return probe.path();
}

uint32_t number_of(uint64_t path, const CallUnderWay* call) {
  Sites& sites = known();
  {
    const std::lock_guard lock(sites.mutex);
    if (const auto at = sites.numbers.find(path); at != sites.numbers.end()) return at->second;
  }
  std::string text = path_of(call);  // (runs code of models: not under the lock)
  const std::lock_guard lock(sites.mutex);
  const auto [at, is_new] = sites.numbers.try_emplace(path, static_cast<uint32_t>(sites.paths.size() + 1));
  if (is_new) sites.paths.push_back(std::move(text));
  return at->second;
}

}  // namespace

constinit thread_local const CallUnderWay* CallUnderWay::innermost_ = nullptr;

uint32_t recording_site() {
  const CallUnderWay* innermost = CallUnderWay::innermost();
  if (!innermost) return given_site;
  Error::Place layer;
  uint64_t path = 0;
  for (const CallUnderWay* call = innermost; call; call = call->outer()) call->follow(layer, path);
  return path == 0 ? 0 : number_of(path, innermost);
}

uint32_t site_of(const Attributes& attributes) noexcept {
  uint32_t site = 0;
  std::memcpy(&site, attributes.bytes + site_at, sizeof site);
  return site;
}

void set_site(Attributes& attributes, uint32_t site) noexcept {
  std::memcpy(attributes.bytes + site_at, &site, sizeof site);
}

void add_site(Error& error, uint32_t site) {
  if (error.place().object) return;
  error.arose_in(nobody, {});
  if (site == 0) return;
  Sites& sites = known();
  const std::lock_guard lock(sites.mutex);
  error.arose_below(nobody, sites.paths[site - 1]);
}

Error with_more(const Error& error, const std::string& more) {
  const std::string text = error.what(), begin = error.path() + ": ";
  const bool begins = !error.path().empty() && text.starts_with(begin);
  Error longer(error.kind(), (begins ? text.substr(begin.size()) : text) + more);
  if (error.place().object) longer.arose_in(error.place(), {});
  if (begins) longer.arose_below(error.place(), error.path());
  return longer;
}

SameSite::SameSite(const Node& node) noexcept : call_(CallUnderWay::innermost_), before_(given_site) {
  CallUnderWay::innermost_ = nullptr;
  given_site = site_of(node.attributes);
}

SameSite::~SameSite() {
  CallUnderWay::innermost_ = call_;
  given_site = before_;
}

}  // namespace rosin
