/**
 * What the page asks of a run's records, in a file next to the topics: where each record lies, and the few numbers of each by which people look for
 * it. It is filled while the page is used, and made anew whenever it is not there.
 */
@NullMarked
package dev.millrace.view.index;

import org.jspecify.annotations.NullMarked;
