/** M2PO: masks the tokens whose squared log ratio is largest, until the mean of the rest is below a threshold. */
@NullMarked
package dev.millrace.corrections.m2po;

import org.jspecify.annotations.NullMarked;
