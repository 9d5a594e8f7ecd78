/** Where weights lie that are too large for the cluster: objects by name and content hash, and files that hold them. */
@NullMarked
package dev.millrace.weights.store;

import org.jspecify.annotations.NullMarked;
