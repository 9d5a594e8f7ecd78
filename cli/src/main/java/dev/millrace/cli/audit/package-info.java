/** How commands that ask about a run find its log: on a cluster, or in the folder of a run that had its own broker. */
@NullMarked
package dev.millrace.cli.audit;

import org.jspecify.annotations.NullMarked;
