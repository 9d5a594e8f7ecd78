/** {@code millrace export} and {@code millrace import}: runs to files and back. */
package dev.millrace.cli.archive;
