"""Why a block is in the context or not: `decide` decides, by what `prompt_reading` finds in a prompt."""
