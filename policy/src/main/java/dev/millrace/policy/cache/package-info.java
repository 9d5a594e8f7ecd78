/** Where a process keeps what it can have again. */
@NullMarked
package dev.millrace.policy.cache;

import org.jspecify.annotations.NullMarked;
