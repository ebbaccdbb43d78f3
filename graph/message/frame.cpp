#include <sar/core/error.hpp>
#include <sar/graph/message/frames.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>

#include <utility>

namespace sar {

const Variable& Frame::at(const std::string& field) const {
  const auto found = fields_.find(field);
  if (found != fields_.end() && found->second.defined()) return found->second;
  std::string there;
  for (const std::string& key : keys()) there += (there.empty() ? "\"" : ", \"") + key + "\"";
  throw InputError(concat(name_, found == fields_.end() ? " has no field \"" : " has no value in field \"",
                          field, "\"; ", there.empty() ? "it is empty" : "its fields are " + there));
}

std::vector<std::string> Frame::keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : fields_) keys.push_back(key);
  return keys;
}

Frame& GraphShardManager::srcdata() const {
  return frames_->src;
}
Frame& GraphShardManager::dstdata() const {
  return frames_->destinations();
}
Frame& GraphShardManager::edata() const {
  return frames_->edge;
}
Frame& GraphShardManager::ndata() const {
  require<InputError>(
      frames_->one_kind,
      "ndata() of a graph whose sources and destinations are different nodes; use srcdata() and "
      "dstdata()");
  return frames_->src;
}

LocalScope GraphShardManager::local_scope() const {
  return LocalScope(frames_);
}

LocalScope::LocalScope(std::shared_ptr<Frames> frames)
    : frames_(std::move(frames)), before_(std::make_unique<Frames>(*frames_)) {}
LocalScope::~LocalScope() {
  *frames_ = std::move(*before_);
}

}  // namespace sar
