/** A run while somebody looks at it: opened, read into its index, followed, and given back when nobody asks of it any more. */
@NullMarked
package dev.millrace.view.follow;

import org.jspecify.annotations.NullMarked;
