/** {@code millrace dead-letters}: listing, showing and putting back what was refused. */
package dev.millrace.cli.deadletters;
