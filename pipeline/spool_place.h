/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where undelivered profiles wait: /var/lib/perfpipe/spool for root, else
 * $XDG_STATE_HOME/perfpipe/spool or ~/.local/state/perfpipe/spool. The caller frees it.
 */
char *spool_place_default(void);
