/** What a person wants to know of a run while it goes, read from meters, groups and the training log; who shows it is not here. */
@NullMarked
package dev.millrace.runtime.live;

import org.jspecify.annotations.NullMarked;
