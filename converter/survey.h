/* SPDX-License-Identifier: Apache-2.0 */
/* What a stream of records holds, for `perfpipe inspect`. */
#pragma once
