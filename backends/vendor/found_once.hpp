// What a library has found for calls, kept by the calls.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace rosin::vendor {

/// Used from any thread.
template <class T> class FoundOnce {
 public:
  /// What was found under this key, else what find() gives now.
  template <class Find> std::shared_ptr<T> of(const std::string& key, Find&& find) {
    const std::lock_guard guard(finding_);
    if (const auto known = found_.find(key); known != found_.end()) return known->second;
    std::shared_ptr<T> made = find();
    if (found_.size() >= most_kept) {
      std::erase_if(found_, [](const auto& one) { return one.second.use_count() == 1; });
    }
    return found_.emplace(key, std::move(made)).first->second;
  }
  void forget() { found_.clear(); }

 private:
  static constexpr size_t most_kept = 256;  // beside those that are used
  std::mutex finding_;
  std::map<std::string, std::shared_ptr<T>> found_;
};

}  // namespace rosin::vendor
