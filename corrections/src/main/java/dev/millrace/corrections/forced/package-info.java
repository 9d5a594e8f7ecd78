/** Tokens the policy did not choose: placeholders of prompts, and tokens that a template or grammar forced. */
package dev.millrace.corrections.forced;
