/** Randomness that does not depend on the order in which things happen. */
@NullMarked
package dev.millrace.generator.random;

import org.jspecify.annotations.NullMarked;
