// SPDX-License-Identifier: MIT

/// DGL's names of the layers of HeteroGraphConv in a state dict.
#pragma once

#include <sar/config.hpp>

#include <string>

namespace sar { inline namespace SAR_PRECISION {

/// Returns the key of a relation's layer, "('user', 'follows', 'user')" for "user:follows:user": Python's
/// repr of the canonical edge type. A name that is not of this form is its own key.
std::string relation_key(const std::string& name);

/// Returns the name of a tensor with relation keys in it: "mods.user:follows:user.weight" becomes
/// "mods.('user', 'follows', 'user').weight".
std::string with_relation_keys(const std::string& tensor_name);

}}  // namespace sar
