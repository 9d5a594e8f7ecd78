/** The topology's meters. */
@NullMarked
package dev.millrace.topology.meters;

import org.jspecify.annotations.NullMarked;
