/** Object stores for weights that are too large for the cluster. */
@NullMarked
package dev.millrace.weights.store;

import org.jspecify.annotations.NullMarked;
