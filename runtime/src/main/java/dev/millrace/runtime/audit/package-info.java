/** A run that is asked about from outside: how its log is found, on a cluster or in its folder, and its records as JSON. */
@NullMarked
package dev.millrace.runtime.audit;

import org.jspecify.annotations.NullMarked;
