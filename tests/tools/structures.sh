# SPDX-License-Identifier: MIT

# Structures of atoms for tests of potentials, sourced.
# structures SEED COUNT [STEP]: 8 atoms in a cubic box, with energies, forces and virials of Morse pairs with a smooth cutoff, and energies of
# single atoms. With STEP, atoms move by about that much from each structure to the next, and from the middle one on the box grows instead.
structures() {
  awk -v seed="$1" -v count="$2" -v step="${3:-0}" 'BEGIN {
    srand(seed); c = 2.2
    for (s = 0; s < count; ++s) {
      e = 0; grows = step && 2 * s >= count
      if (s == 0 || !step) L = 2.3 + 0.2 * rand()
      if (grows) L *= 1.003
      for (i = 0; i < 8; ++i) {
        if (s == 0 || !step) kind[i] = rand() < 0.5 ? "Si" : "O"
        for (k = 0; k < 3; ++k) {
          if (s == 0 || !step) x[i, k] = L / 2 * (int(i / 2 ^ k) % 2) + 0.15 * (rand() - 0.5)
          else if (grows) x[i, k] *= 1.003
          else x[i, k] += step * (rand() - 0.5)
          f[i, k] = 0
        }
      }
      for (k = 0; k < 9; ++k) w[k] = 0
      for (i = 0; i < 8; ++i) {
        e += kind[i] == "Si" ? -5 : -3
        for (j = 0; j < 8; ++j) for (n = 0; n < 27; ++n) {
          r = 0
          for (k = 0; k < 3; ++k) { v[k] = x[j, k] + (int(n / 3 ^ k) % 3 - 1) * L - x[i, k]; r += v[k] ^ 2 }
          r = sqrt(r)
          if (r < 1e-9 || r >= c) continue
          q = exp(2 * (1 - r)); h = (1 - r / c) ^ 2; m = (1 - q) ^ 2 - 1; g = kind[i] == kind[j] ? 1 : 1.5
          slope = g * (4 * q * (1 - q) * h - 2 * m * (1 - r / c) / c)
          e += 0.5 * g * m * h
          for (k = 0; k < 3; ++k) { f[i, k] += slope * v[k] / r; for (l = 0; l < 3; ++l) w[3 * k + l] -= 0.5 * slope * v[k] * v[l] / r }
        }
      }
      printf "8\nLattice=\"%.9f 0 0 0 %.9f 0 0 0 %.9f\" Properties=species:S:1:pos:R:3:forces:R:3 energy=%.9f config_type=\"a b\" virial=\"", L, L, L, e
      for (k = 0; k < 9; ++k) printf "%s%.9f", k ? " " : "", w[k]
      print "\""
      for (i = 0; i < 8; ++i) print kind[i], x[i, 0], x[i, 1], x[i, 2], f[i, 0], f[i, 1], f[i, 2]
    }
  }'
}
