/** Files that a run is made of, which travel on its log. */
@NullMarked
package dev.millrace.runtime.files;

import org.jspecify.annotations.NullMarked;
