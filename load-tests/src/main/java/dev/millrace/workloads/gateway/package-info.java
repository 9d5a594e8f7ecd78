/** What a gateway adds to an agent's calls: beside direct calls of the same engine, which always takes the same time. */
@NullMarked
package dev.millrace.workloads.gateway;

import org.jspecify.annotations.NullMarked;
